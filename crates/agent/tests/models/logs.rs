//! The log of a turn at the most detailed level never contains the key.

use std::io;
use std::sync::{Arc, Mutex};

use eyot_agent::standin::StandInTurn;
use eyot_agent::{ModelErrorKind, ModelOptions};
use tracing_subscriber::fmt::MakeWriter;

use crate::setup::{APIS, KEY, Vendor, hello};

/// A log in memory.
#[derive(Clone, Default)]
struct KeptLog(Arc<Mutex<Vec<u8>>>);

impl io::Write for KeptLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for KeptLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[test]
fn the_log_has_no_key_even_where_a_provider_repeats_it() {
    let log = KeptLog::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(fail_with_the_key());
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("asking the model again"), "{log}");
    assert!(!log.contains(KEY), "{log}");
}

/// Causes failures before the stream, within it, and repeatedly. Each has the key in its text.
async fn fail_with_the_key() {
    let said = format!("the key {KEY} is wrong");
    for api in APIS {
        let mut options = ModelOptions::default();
        options.first_wait_ms = 1;
        let turns = [
            StandInTurn::failure(503, "overloaded_error", &said),
            StandInTurn::failure(401, "authentication_error", &said),
            StandInTurn::text("a text that is long enough").broken_by(&said),
        ];
        let vendor = Vendor::with(api, options, turns).await;
        let failure = vendor.ask(hello()).await.unwrap_err();
        assert_eq!(failure.kind, ModelErrorKind::Unauthorized);
        assert!(!format!("{failure:?} {failure}").contains(KEY));
        let failure = vendor.ask(hello()).await.unwrap_err();
        assert!(!format!("{failure:?} {failure}").contains(KEY));
    }
}
