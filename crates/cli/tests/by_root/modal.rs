//! `eyot --provider modal` against a stand-in of Modal's two services, with native sandboxes.

use std::process::Command;
use std::sync::Arc;

use eyot_providers::modal::wire::{
    AppGetOrCreateRequest, AppGetOrCreateResponse, AuthTokenGetResponse, CLIENT, Empty, ImageDefinition,
    ImageGetOrCreateRequest, ImageGetOrCreateResponse, SandboxCreateV2Request, SandboxCreateV2Response,
    SandboxDefinition,
};
use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::runtime::Runtime;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::Case;
use crate::machine::{Machine, Ran};
use crate::modal_stand_in::{StandIn, TOKEN_ID, TOKEN_SECRET};
use crate::vendor_rules::{a_file_goes_in_and_out, a_tree_goes_there_and_back, adopted, are_refused, names};

pub fn trials() -> Vec<Case> {
    vec![
        (
            "a_sandbox_of_modal_is_made_used_found_by_later_commands_and_removed",
            a_sandbox_of_modal_is_made_used_found_by_later_commands_and_removed,
        ),
        (
            "what_modal_does_not_have_is_refused_with_the_reason",
            what_modal_does_not_have_is_refused_with_the_reason,
        ),
        (
            "without_a_token_of_modal_the_error_says_where_it_belongs",
            without_a_token_of_modal_the_error_says_where_it_belongs,
        ),
        (
            "a_sandbox_of_modal_of_somebody_else_is_adopted_and_its_removal_leaves_it",
            a_sandbox_of_modal_of_somebody_else_is_adopted_and_its_removal_leaves_it,
        ),
        ("a_tree_goes_from_native_to_modal_and_back", a_tree_goes_from_native_to_modal_and_back),
        (
            "modal_is_called_over_tls_and_only_where_its_certificate_is_trusted",
            modal_is_called_over_tls_and_only_where_its_certificate_is_trusted,
        ),
    ]
}

/// A machine, and the vendor elsewhere.
struct Vendor {
    machine: Machine,
    stand_in: StandIn,
    runtime: Runtime,
}

/// Makes an authority, and the configuration of a server that it vouches for. Returns its certificate, too.
fn authority() -> (String, Arc<ServerConfig>) {
    let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(params, authority_key);
    let names = ["localhost".to_owned()];
    let own = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let mut config =
        config.with_no_client_auth().with_single_cert(vec![own.der().clone()], key.into()).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    (certificate.pem(), Arc::new(config))
}

impl Vendor {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(tls: Option<Arc<ServerConfig>>) -> Self {
        let runtime = Runtime::new().unwrap();
        let stand_in = runtime.block_on(StandIn::start_with(0, tls));
        Self { machine: Machine::new(), stand_in, runtime }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command(&[&["--provider", "modal"], arguments].concat());
        command.env("MODAL_SERVER_URL", &self.stand_in.url);
        command.env("MODAL_TOKEN_ID", TOKEN_ID).env("MODAL_TOKEN_SECRET", TOKEN_SECRET);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Returns the names of the sandboxes that `eyot ls` shows.
    fn names(&self) -> Vec<String> {
        names(|arguments| self.run(arguments))
    }

    /// Asks the vendor itself, as its own client does.
    fn ask<T: Message + Default>(&self, method: &str, auth: &str, message: &impl Message) -> T {
        self.runtime.block_on(async {
            let address = self.stand_in.url.trim_start_matches("http://");
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let request = http::Request::post(format!("{}{CLIENT}{method}", self.stand_in.url))
                .header("content-type", "application/grpc")
                .header("x-modal-token-id", TOKEN_ID)
                .header("x-modal-token-secret", TOKEN_SECRET)
                .header("x-modal-auth-token", auth);
            let (answer, mut body) = sender.send_request(request.body(()).unwrap(), false).unwrap();
            let message = message.encode_to_vec();
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            body.send_data([&[0][..], &length, &message].concat().into(), true).unwrap();
            let mut answer = answer.await.unwrap().into_body();
            let mut read = Vec::new();
            while let Some(piece) = answer.data().await {
                read.extend_from_slice(&piece.unwrap());
            }
            T::decode(&read[5..]).unwrap()
        })
    }

    /// Makes a sandbox as another program does.
    fn foreign(&self) -> String {
        let auth: AuthTokenGetResponse = self.ask("AuthTokenGet", "", &Empty {});
        let app =
            AppGetOrCreateRequest { app_name: "another".to_owned(), ..AppGetOrCreateRequest::default() };
        let app: AppGetOrCreateResponse = self.ask("AppGetOrCreate", "", &app);
        let image = ImageDefinition { dockerfile_commands: vec!["FROM another".to_owned()] };
        let image = ImageGetOrCreateRequest {
            image: Some(image),
            app_id: app.app_id.clone(),
            builder_version: "2025.06".to_owned(),
        };
        let image: ImageGetOrCreateResponse = self.ask("ImageGetOrCreate", &auth.token, &image);
        let definition =
            SandboxDefinition { image_id: image.image_id, timeout_secs: 600, ..SandboxDefinition::default() };
        let request = SandboxCreateV2Request {
            app_id: app.app_id,
            definition: Some(definition),
            ..SandboxCreateV2Request::default()
        };
        self.ask::<SandboxCreateV2Response>("SandboxCreateV2", &auth.token, &request).sandbox_id
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.runtime.block_on(self.stand_in.end());
    }
}

fn a_sandbox_of_modal_is_made_used_found_by_later_commands_and_removed() {
    let vendor = Vendor::new();
    assert_eq!(vendor.run(&["create", "--name", "job", "-e", "WORD=kept"]).success(), "job\n");
    let ran = vendor.run(&["exec", "job", "--", "sh", "-c", "echo $WORD; pwd; id -un; exit 3"]);
    assert_eq!((ran.code, &ran.stdout[..]), (Some(3), &b"kept\n/workspace\nroot\n"[..]), "{ran:?}");
    a_file_goes_in_and_out(&vendor.machine, |arguments| vendor.run(arguments));
    assert_eq!(vendor.names(), ["job"]);
    let shown = vendor.run(&["inspect", "job"]).success();
    assert!(shown.contains("modal"), "{shown}");
    vendor.run(&["rm", "job"]).success();
    assert!(vendor.names().is_empty());
    assert!(vendor.stand_in.running().is_empty());
    let gone = vendor.run(&["exec", "job", "true"]);
    assert!(gone.failure(125).contains("job"), "{gone:?}");
}

fn what_modal_does_not_have_is_refused_with_the_reason() {
    let vendor = Vendor::new();
    vendor.run(&["create", "--name", "job"]).success();
    let refused = [
        (&["create", "--ttl", "1h"][..], "with --ttl"),
        (&["create", "--net", "host"], "--net"),
        (&["create", "--user", "root"], "--user"),
        (&["create", "--require", "memory", "--memory", "1g"], "require"),
        (&["sleep", "job"], "modal does not support sleep"),
        (&["dial", "job", "80"], "modal does not support dial"),
        (&["grep", "job", "x"], "modal does not support grep"),
    ];
    are_refused(&refused, |arguments| vendor.run(arguments));
    assert_eq!(vendor.names(), ["job"]);
}

fn without_a_token_of_modal_the_error_says_where_it_belongs() {
    let vendor = Vendor::new();
    let ran = Ran::from(vendor.command(&["ls"]).env_remove("MODAL_TOKEN_SECRET").output().unwrap());
    assert!(
        ran.stderr.contains("Modal needs a token") && ran.stderr.contains("MODAL_TOKEN_SECRET"),
        "{ran:?}"
    );
    let wrong = Ran::from(vendor.command(&["ls"]).env("MODAL_TOKEN_SECRET", "as-wrong").output().unwrap());
    assert!(
        wrong.stderr.contains("Modal refused the token") && !wrong.stderr.contains("as-wrong"),
        "{wrong:?}"
    );
}

fn a_sandbox_of_modal_of_somebody_else_is_adopted_and_its_removal_leaves_it() {
    let vendor = Vendor::new();
    let id = vendor.foreign();
    let own = adopted(&id, |arguments| vendor.run(arguments));
    let ran = vendor.run(&["exec", &own, "--", "sh", "-c", "echo here; pwd"]).success();
    assert_eq!(ran, "here\n/root\n");
    vendor.run(&["rm", &own]).success();
    assert_eq!(vendor.run(&["ls", "-q"]).stdout, b"");
    assert_eq!(vendor.stand_in.running(), [id]);
    let unknown = vendor.run(&["adopt", "sb-0"]);
    assert!(unknown.stderr.contains("Modal has no sandbox `sb-0`"), "{unknown:?}");
}

fn a_tree_goes_from_native_to_modal_and_back() {
    let vendor = Vendor::new();
    a_tree_goes_there_and_back(&vendor.machine, "modal", |arguments| vendor.run(arguments));
}

fn modal_is_called_over_tls_and_only_where_its_certificate_is_trusted() {
    let (certificate, config) = authority();
    let vendor = Vendor::with(Some(config));
    let trusted = vendor.machine.write("authority.pem", &certificate);
    let run = |arguments: &[&str]| {
        Ran::from(vendor.command(arguments).env("SSL_CERT_FILE", &trusted).output().unwrap())
    };
    assert_eq!(run(&["create", "--name", "job"]).success(), "job\n");
    assert_eq!(run(&["exec", "job", "--", "echo", "over TLS"]).success(), "over TLS\n");
    let ran = vendor.run(&["ls"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("Modal does not answer"), "{ran:?}");
    run(&["rm", "job"]).success();
}
