//! The arguments of `eyot net`.

use clap::Args;
use eyot::EgressRule;

const NET_EXAMPLES: &str = "\
Examples:
  eyot net builder                             the rules that hold
  eyot net builder --allow api.example.com:443 --allow '*.cdn.example.com:443'
  eyot net builder --allow 10.1.0.0/16:5432    a private network, else closed
  eyot net builder --deny '*.ads.example.com'
  eyot net builder --remove api.example.com:443
  eyot net builder --clear                     every public address again
  eyot net builder --events -f                 its attempts, each with a reason

For sandboxes of the network egress (eyot create --net egress). Without rules every public address \
is allowed. With an allow rule nothing else is; a deny rule wins over all. What is not public (the \
host, private networks, metadata services) needs a rule with its network; the host's loopback has \
none. A change holds at once and for good, and closes what it no longer allows.

A rule is a host (example.com), what is below a domain (*.example.com), an address or a network \
(10.1.0.0/16), or * for all that is public; each with :port if it is for one port alone.";

/// `eyot net`
#[derive(Debug, Args)]
#[command(after_help = NET_EXAMPLES)]
pub struct NetArgs {
    /// The sandbox's name or id
    pub name: String,
    /// Allow this address; the first allow rule forbids everything else
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<EgressRule>,
    /// Refuse this address even if a rule allows it
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<EgressRule>,
    /// Remove this rule, allow or deny
    #[arg(long, value_name = "RULE")]
    pub remove: Vec<EgressRule>,
    /// Remove all rules first
    #[arg(long)]
    pub clear: bool,
    /// Print the decisions, oldest first
    #[arg(long, conflicts_with_all = ["allow", "deny", "remove", "clear"])]
    pub events: bool,
    /// Then print new decisions until the sandbox ends
    #[arg(long, short, requires = "events")]
    pub follow: bool,
    /// Print only this many of the last decisions; 1000 are kept
    #[arg(long, short = 'n', value_name = "N", requires = "events")]
    pub last: Option<usize>,
}
