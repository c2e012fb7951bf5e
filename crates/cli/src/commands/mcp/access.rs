//! The address of an MCP server, and the tokens that let clients in.
//!
//! A token is always needed. The check of `Host` and `Origin` keeps web pages out, but other users
//! of this machine, and programs that they run, reach its loopback too.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use eyot_server::mcp::{HttpOptions, Tokens};
use tokio::net::TcpListener;

use crate::addresses::{addresses, listen};
use crate::args::McpAccessArgs;
use crate::context::Context;
use crate::errors::{Failure, USAGE};

/// The variable with the token. A flag would show it to everybody who lists processes.
const TOKEN_VARIABLE: &str = "EYOT_MCP_TOKEN";

/// A server's listener and its callers.
pub struct McpListener {
    pub listener: TcpListener,
    pub options: HttpOptions,
}

/// Listens at this address and prints it on stderr, with the token if it was generated.
pub async fn open(address: &str, args: &McpAccessArgs, context: &Context) -> Result<McpListener, Failure> {
    let (tokens, made_up) = tokens(args.token_file.as_deref(), std::env::var(TOKEN_VARIABLE).ok())?;
    let addresses = addresses(address).await?;
    if made_up.is_some() && !addresses.iter().all(|address| address.ip().is_loopback()) {
        let message = format!("`{address}` can be reached from other machines, and there is no token");
        let hint = format!("give one with `--token-file FILE` or {TOKEN_VARIABLE}, or listen on 127.0.0.1");
        return Err(Failure::usage(message).hint(hint));
    }
    let listener = listen(&addresses, address, "--http").await?;
    announce(&listener, made_up.as_deref(), context)?;
    let mut options = HttpOptions::new(tokens);
    options.allowed_hosts.clone_from(&args.allow_host);
    options.allowed_origins.clone_from(&args.allow_origin);
    options.session_timeout = Duration::from_millis(args.session_timeout);
    options.max_sessions = args.max_sessions;
    Ok(McpListener { listener, options })
}

/// Returns the tokens, and the text of one that was generated. The flag wins over the variable.
fn tokens(file: Option<&Path>, variable: Option<String>) -> Result<(Tokens, Option<String>), Failure> {
    let (place, given) = match (file, variable) {
        (Some(file), _) => {
            let place = format!("the tokens `{}`", file.display());
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| Failure::host(format!("read {place}"), error))?;
            (place, text)
        }
        (None, Some(variable)) if !variable.is_empty() => {
            (format!("the variable {TOKEN_VARIABLE}"), variable)
        }
        (None, _) => {
            let (tokens, text) = Tokens::generate()?;
            return Ok((tokens, Some(text)));
        }
    };
    let lines: Vec<_> = given.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tokens = Tokens::new(&lines);
    Ok((tokens.map_err(|error| Failure::with_code(error.context(place), USAGE))?, None))
}

fn announce(listener: &TcpListener, token: Option<&str>, context: &Context) -> Result<(), Failure> {
    let address = listener.local_addr().map_err(|error| Failure::host("find our address", error))?;
    let mut text = format!("eyot: MCP at http://{address}/mcp\n");
    if let Some(token) = token {
        text.push_str(&format!("eyot: the token, for this run and shown only here: {token}\n"));
    } else if context.output.quiet {
        return Ok(());
    }
    // Whoever started us may have closed it; that keeps nobody from serving.
    drop(io::stderr().lock().write_all(text.as_bytes()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_alone_is_on_loopback_and_nonsense_is_refused() {
        for text in ["7070", ":7070", "127.0.0.1:7070"] {
            assert_eq!(addresses(text).await.unwrap(), ["127.0.0.1:7070".parse().unwrap()], "{text}");
        }
        for text in ["", "70707", "127.0.0.1", "http://127.0.0.1:7070"] {
            assert_eq!(addresses(text).await.unwrap_err().exit_code(), USAGE, "{text}");
        }
    }

    #[test]
    fn the_file_wins_over_the_variable_and_without_either_one_is_made_up() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"token-number-one-of-two\n\ntoken-number-two-of-two\n").unwrap();
        let (given, none) = tokens(Some(file.path()), Some("a-variable-with-a-token".to_owned())).unwrap();
        assert!(format!("{given:?}").starts_with('2') && none.is_none());
        assert!(tokens(None, Some("a-variable-with-a-token".to_owned())).unwrap().1.is_none());
        assert_eq!(tokens(None, Some(String::new())).unwrap().1.unwrap().len(), 64);
        let Failure::Error { error, exit_code } = tokens(None, Some("short".to_owned())).unwrap_err() else {
            panic!("an error")
        };
        assert_eq!(exit_code, USAGE);
        assert!(error.to_string().starts_with("the variable EYOT_MCP_TOKEN: "), "{error}");
    }
}
