//! `eyot inspect`: prints what is known of a sandbox: its spec, its isolation and its use of
//! resources, without secrets unless asked for.

use eyot::{
    IdentityMap, IdleAction, Isolation, Limits, LimitsEnforced, PublishedPort, Sandbox, SandboxInfo, Usage,
    UserCounts,
};
use serde::Serialize;
use serde_json::Value;

use super::ls::status;
use crate::args::InspectArgs;
use crate::context::Context;
use crate::durations::{age, humane, moment, since};
use crate::errors::Failure;
use crate::output::printable;
use crate::provider::{find, memory_limit_mib, process_limit};
use crate::redaction::{self, live_info};
use crate::sizes::{shown_bytes, shown_mib};

pub async fn run(args: &InspectArgs, context: &Context) -> Result<u8, Failure> {
    let mut all = Vec::new();
    for name in &args.names {
        all.push(SeenSandbox::look(name, context).await?);
    }
    if context.output.json {
        let records: Result<Vec<_>, _> = all.iter().map(|seen| seen.record(args.show_env, context)).collect();
        match records?.as_slice() {
            [one] => context.output.value(one)?,
            several => context.output.value(&several)?,
        }
    } else {
        let pages: Result<Vec<_>, _> = all.iter().map(|seen| seen.page(args.show_env)).collect();
        context.output.text(&pages?.join("\n"))?;
    }
    Ok(0)
}

/// A sandbox as it is now. One that sleeps or is dead is not woken: it uses nothing, and has no
/// ports.
struct SeenSandbox {
    info: SandboxInfo,
    usage: Option<Usage>,
    ports: Vec<PublishedPort>,
}

impl SeenSandbox {
    async fn look(named: &str, context: &Context) -> Result<Self, Failure> {
        let (provider, name) = context.find(named).await?;
        match Sandbox::open(provider.as_ref(), &name).await {
            Ok(sandbox) => Ok(Self {
                // Not every provider counts; then there is nothing to show.
                usage: sandbox.usage().await.ok(),
                ports: sandbox.published_ports().await?,
                info: live_info(&sandbox),
            }),
            Err(error) if error.is_sleeping() => {
                let info = provider.info(&name).await.map_err(|error| context.explained(error, named))?;
                Ok(Self { info, usage: None, ports: Vec::new() })
            }
            Err(error) => Err(context.explained(error, named).into()),
        }
    }

    /// Returns all that is known, for programs.
    fn record(&self, show_env: bool, context: &Context) -> Result<Value, Failure> {
        let mut facts = redaction::facts(&self.info, show_env)?;
        facts["usage"] = word_value(&self.usage);
        facts["published_ports"] = word_value(&self.ports);
        context.add_pool(&mut facts, &self.info.id)?;
        Ok(facts)
    }

    /// Renders what a person wants to know.
    fn page(&self, show_env: bool) -> Result<String, Failure> {
        let Self { info, usage, ports } = self;
        let mut page = InspectPage(format!("{}\n", info.name));
        describe(&mut page, info);
        describe_spec(&mut page, info, &redaction::facts(info, show_env)?);
        for PublishedPort { port, host, host_port } in ports {
            page.line("published port", format!("{port} on {host}:{host_port}"));
        }
        match find(&info.provider) {
            Ok(row) if row.lives_with_its_process => describe_interpreter(&mut page, &info.isolation),
            _ => describe_isolation(&mut page, &info.isolation),
        }
        describe_limits(&mut page, &info.spec.limits, &info.isolation.limits);
        if let Some(usage) = usage {
            describe_usage(&mut page, *usage);
        }
        Ok(page.0)
    }
}

/// Lines of labels and values, in sections.
#[derive(Default)]
struct InspectPage(String);

impl InspectPage {
    fn section(&mut self, title: &str) {
        self.0.push_str(&format!("\n{title}\n"));
    }

    fn line(&mut self, label: &str, value: impl AsRef<str>) {
        self.0.push_str(format!("  {label:<16} {}", printable(value.as_ref())).trim_end());
        self.0.push('\n');
    }

    fn optional_line(&mut self, label: &str, value: Option<String>) {
        if let Some(value) = value {
            self.line(label, value);
        }
    }
}

fn describe(page: &mut InspectPage, info: &SandboxInfo) {
    page.line("id", info.id.as_str());
    page.optional_line("pool", info.pool.as_ref().map(ToString::to_string));
    page.line("status", status(info.status));
    page.line("provider", &info.provider);
    page.line("created", format!("{} ({} ago)", moment(info.created_ms), age(since(info.created_ms))));
    page.line("image", image(info.spec.image.as_deref()));
    page.line("workdir", info.workdir.as_str());
    page.optional_line("user", info.spec.user.clone());
    page.optional_line("ttl", info.spec.lifecycle.ttl_ms.map(humane));
    page.optional_line("idle timeout", info.spec.lifecycle.idle_timeout_ms.map(humane));
    let when_idle = match info.spec.lifecycle.on_idle {
        IdleAction::Sleep => "sleeps",
        IdleAction::Destroy => "is destroyed",
    };
    page.optional_line("when idle", info.spec.lifecycle.idle_timeout_ms.map(|_| when_idle.to_owned()));
    for (key, value) in &info.spec.labels {
        page.line("label", format!("{key}={value}"));
    }
    for (key, value) in &info.spec.metadata {
        page.line("metadata", format!("{key}={value}"));
    }
}

fn describe_spec(page: &mut InspectPage, info: &SandboxInfo, facts: &Value) {
    for (label, rules) in [("allow", &info.spec.egress.allow), ("deny", &info.spec.egress.deny)] {
        for rule in rules {
            page.line(label, rule.to_string());
        }
    }
    for mount in &info.spec.mounts {
        let how = match (mount.writable, mount.cow) {
            (_, true) => "a copy on write",
            (true, false) => "read-write",
            (false, false) => "read-only",
        };
        page.line("mount", format!("{} on {} ({how})", mount.source.display(), mount.target));
    }
    for env in [&facts["spec"]["env"], &facts["spec"]["manifest"]["env"]] {
        for (name, value) in env.as_object().into_iter().flatten() {
            let shown = value.as_str().map(|value| format!("{name}={value}"));
            page.line("variable", shown.unwrap_or_else(|| name.clone()));
        }
    }
    for (path, content) in facts["spec"]["manifest"]["files"].as_object().into_iter().flatten() {
        page.line("file", format!("{path} ({} bytes)", content["bytes"]));
    }
}

/// Describes what isolates commands that no kernel runs.
fn describe_interpreter(page: &mut InspectPage, isolation: &Isolation) {
    page.section("isolation");
    page.line("commands", "interpreted by Eyot itself: none is a process");
    page.line("files", "in memory: none is the host's");
    page.line("kernel", "none: commands make no system calls");
    page.line("users", "none: `id` prints a made-up user");
    page.line("network", word(&isolation.network));
}

fn describe_isolation(page: &mut InspectPage, isolation: &Isolation) {
    page.section("isolation");
    let kernel = if isolation.shares_host_kernel { "shared with the host" } else { "its own" };
    page.line("kernel", kernel);
    page.line("namespaces", list(&isolation.namespaces));
    page.line("users", users(isolation.identity));
    page.line("capabilities", capabilities(&isolation.capabilities));
    let setuid =
        if isolation.no_new_privileges { "programs gain nothing" } else { "programs gain rights inside" };
    page.line("set-user-id", setuid);
    let seccomp = match isolation.seccomp_instructions {
        Some(count) => Some(format!("filters system calls, in {count} instructions")),
        None => isolation.seccomp.then(|| "filters system calls".to_owned()),
    };
    page.line("seccomp", seccomp.unwrap_or_else(|| "none".to_owned()));
    let landlock =
        isolation.landlock_abi.map(|abi| format!("restricts files, by version {abi} of the kernel's rules"));
    page.line("landlock", landlock.unwrap_or_else(|| "none".to_owned()));
    page.line("network", word(&isolation.network));
    page.optional_line("runtime", isolation.runtime.clone());
    page.line(
        "guest",
        if isolation.guest_out_of_reach {
            "no process inside can stop or read it"
        } else {
            "root inside can stop or read it"
        },
    );
    page.line("shared files", list(&isolation.shared_files));
    page.line("per-user limits", per_user_limits(isolation.user_counts));
    page.line("root read-only", yes_no(isolation.readonly_rootfs));
    page.line("cgroup limits", list(&isolation.cgroup_controllers));
}

fn describe_limits(page: &mut InspectPage, limits: &Limits, held: &LimitsEnforced) {
    page.section("limits");
    page.line("memory limit", limit(memory_limit_mib(limits, held).map(shown_mib), word(&held.memory)));
    page.line("cpu limit", limit(limits.cpus.map(|cpus| cpus.to_string()), word(&held.cpus)));
    page.line(
        "process limit",
        limit(process_limit(limits, held).map(|most| most.to_string()), word(&held.pids)),
    );
    page.line("disk limit", limit(limits.disk_mib.map(shown_mib), word(&held.disk)));
    page.line("deadline", limits.timeout_ms.map_or_else(|| "none".to_owned(), humane));
    let kept = limits.max_output_bytes.unwrap_or(Limits::DEFAULT_MAX_OUTPUT_BYTES);
    page.line("output kept", format!("{} of each stream", shown_bytes(kept)));
    page.line("largest file", limits.max_file_bytes.map_or_else(|| "no limit".to_owned(), shown_bytes));
}

/// Renders a limit with the means by which it is held.
fn limit(most: Option<String>, held: String) -> String {
    match (most, held.as_str()) {
        (None, _) => "none".to_owned(),
        (Some(most), "none") => format!("{most}, not enforced"),
        (Some(most), held) => format!("{most} ({held})"),
    }
}

fn describe_usage(page: &mut InspectPage, usage: Usage) {
    page.section("usage");
    page.optional_line("processes", usage.processes.map(|count| count.to_string()));
    page.optional_line("memory", usage.memory_bytes.map(mebibytes));
    page.optional_line("memory peak", usage.memory_peak_bytes.map(mebibytes));
    page.optional_line("cpu time", usage.cpu_ms.map(humane));
    page.optional_line("disk", usage.disk_bytes.map(mebibytes));
    page.optional_line("up", usage.uptime_ms.map(age));
    page.optional_line("idle", usage.idle_ms.map(age));
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// Renders capabilities. They hold in the sandbox's own user namespace alone.
fn capabilities(held: &[String]) -> String {
    if held.is_empty() { list(held) } else { format!("inside only: {}", list(held)) }
}

fn image(image: Option<&str>) -> &str {
    match image {
        Some("host") => "host: the programs of this machine",
        image => image.unwrap_or("-"),
    }
}

fn users(identity: Option<IdentityMap>) -> &'static str {
    match identity {
        None => "host users",
        Some(IdentityMap::Range) => "range: 65,536 host users of its own; root inside is one of them",
        Some(IdentityMap::Single) => "single: your own host user; no root inside",
    }
}

fn per_user_limits(counts: Option<UserCounts>) -> &'static str {
    match counts {
        Some(UserCounts::Own) => "of its own, which no other sandbox can use up",
        Some(UserCounts::Shared) => "shared: others of the same host user use them up too",
        None => "not reported",
    }
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Returns the name of an enum's value on the wire.
fn word(value: &impl Serialize) -> String {
    word_value(value).as_str().unwrap_or_default().to_owned()
}

fn word_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
