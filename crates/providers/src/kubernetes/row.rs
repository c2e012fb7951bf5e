//! The row of the Kubernetes provider.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};

use super::NAME;
use super::capabilities::capabilities;
use super::key::ServerKey;
use super::options::{IMAGE, KubernetesOptions, PodReach};
use super::provider::KubernetesProvider;
use crate::row::{
    ImagesOfProvider, OptionKind, OptionSchema, ProviderCheck, ProviderRow, ProviderSettings, ProviderTests,
};

const KUBECONFIG: &str = "kubeconfig";
const CONTEXT: &str = "context";
const NAMESPACE: &str = "namespace";
const IMAGE_OPTION: &str = "image";
const KEY_FILE: &str = "key_file";
const GUEST_IMAGE: &str = "guest_image";
const RUNTIME_CLASS: &str = "runtime_class";
const USER_NAMESPACES: &str = "user_namespaces";
const USER_ID: &str = "user_id";
const REACH: &str = "reach";
const PORT_FORWARD: &str = "port-forward";
const POD_ADDRESS: &str = "pod-address";
const MAX_AGE: &str = "max_age_s";
/// A year.
const LONGEST_AGE_S: u64 = 365 * 24 * 60 * 60;
/// The numbers of users that Linux has for programs.
const MOST_USER_ID: u64 = 60_000;

const fn text(name: &'static str, default: Option<&'static str>, help: &'static str) -> OptionSchema {
    OptionSchema { name, kind: OptionKind::Text, default, help }
}

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    options: &[
        text(
            KUBECONFIG,
            None,
            "The file that says where the cluster is; without it KUBECONFIG, else the usual file, \
                                else the service account of this Pod",
        ),
        text(CONTEXT, None, "The context in that file; without it the current one"),
        text(NAMESPACE, None, "The namespace of the Pods; without it the context's"),
        text(IMAGE_OPTION, Some(IMAGE), "The image of sandboxes that name none"),
        text(
            KEY_FILE,
            None,
            "The file with the signing key, 32 random bytes, that all servers have; without it one in the state folder, \
                                made the first time",
        ),
        text(
            GUEST_IMAGE,
            None,
            "An image with the guest as /eyot-guest, for an init container; without it every \
                                 image brings the guest as /.eyot-guest/eyot-guest",
        ),
        text(
            RUNTIME_CLASS,
            None,
            "The RuntimeClass of sandboxes that name no runtime, such as gvisor or kata",
        ),
        OptionSchema {
            name: USER_NAMESPACES,
            kind: OptionKind::Flag,
            default: Some("false"),
            help: "Asks for a user namespace for each Pod (hostUsers: false)",
        },
        OptionSchema {
            name: USER_ID,
            kind: OptionKind::Number { unit: "a user", least: 1, most: MOST_USER_ID },
            default: Some("1000"),
            help: "The user and group that everything in a Pod runs as",
        },
        OptionSchema {
            name: REACH,
            kind: OptionKind::Choice { words: &[POD_ADDRESS, PORT_FORWARD] },
            default: Some(POD_ADDRESS),
            help: "The way to a Pod: its address, from inside of the cluster, or port-forward, from a laptop",
        },
        OptionSchema {
            name: MAX_AGE,
            kind: OptionKind::Number { unit: "seconds", least: 60, most: LONGEST_AGE_S },
            default: None,
            help: "The age at which the cluster itself ends a Pod; without it never",
        },
    ],
    takes_container_options: true,
    is_elsewhere: true,
    shared_by: Some(shared_by),
    check: Some(|settings| Box::pin(check(settings))),
    images: ImagesOfProvider::Elsewhere(
        "these are the images of native sandboxes; the nodes of a cluster fetch theirs from a registry",
    ),
    tests: ProviderTests { rounds: 2, reuses_sandboxes: true, ..ProviderTests::quick() },
    ..ProviderRow::new(NAME, "Pods of a Kubernetes cluster", capabilities, |settings, _| Ok(open(settings)?))
};

fn open(settings: &ProviderSettings) -> Result<Arc<KubernetesProvider>> {
    let usual = KubernetesOptions::new(settings.state.clone());
    let user_id = settings.number(USER_ID).and_then(|id| u32::try_from(id).ok());
    let is_forwarded = settings.text(REACH).as_deref() == Some(PORT_FORWARD);
    Ok(KubernetesProvider::new(KubernetesOptions {
        key_file: settings.text(KEY_FILE).map(Into::into),
        kubeconfig: settings.text(KUBECONFIG).map(Into::into),
        context: settings.text(CONTEXT),
        namespace: settings.text(NAMESPACE),
        image: settings.text(IMAGE_OPTION).unwrap_or(usual.image),
        guest_image: settings.text(GUEST_IMAGE),
        runtime_class: settings.text(RUNTIME_CLASS),
        user_namespaces: settings.flag(USER_NAMESPACES),
        user_id: user_id.unwrap_or(usual.user_id),
        reach: if is_forwarded { PodReach::PortForward } else { PodReach::PodAddress },
        max_age_s: settings.number(MAX_AGE),
        state: usual.state,
    }))
}

/// Says whose the sandboxes are: those of a signing key, in a namespace.
fn shared_by(settings: &ProviderSettings) -> Result<String> {
    let Some(file) = settings.text(KEY_FILE) else {
        let message = "servers that share a database share a signing key, and none is named";
        return Err(Error::new(ErrorKind::Setup, message).with_hint(
            "name its file by the option key_file of the provider; docs/kubernetes.md says how to make one",
        ));
    };
    let owner = ServerKey::read(file.as_ref())?.owner();
    let namespace = settings.text(NAMESPACE).map(|name| format!(" in the namespace {name}"));
    Ok(format!("the signing key {owner}{}", namespace.unwrap_or_default()))
}

async fn check(settings: ProviderSettings) -> ProviderCheck {
    match look(&settings).await {
        Ok((version, namespace, missing)) if missing.is_empty() => ProviderCheck::usable(format!(
            "a cluster {version} answers, and its namespace {namespace} grants every right; \
             whether network policies are enforced is not known"
        )),
        Ok((version, namespace, missing)) => {
            let message = format!(
                "a cluster {version} answers; in its namespace {namespace} these rights are missing: {}",
                missing.join(", ")
            );
            let error = Error::new(ErrorKind::Permission, message)
                .with_hint("contrib/kubernetes has the smallest roles that work");
            ProviderCheck::unusable(&error)
        }
        Err(error) => ProviderCheck { cause: Some("no-cluster"), ..ProviderCheck::unusable(&error) },
    }
}

async fn look(settings: &ProviderSettings) -> Result<(String, String, Vec<String>)> {
    let provider = open(settings)?;
    let version = provider.version().await?;
    Ok((version, provider.namespace().await?, provider.missing_rights().await?))
}
