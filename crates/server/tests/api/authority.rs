//! A certificate authority for one test.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The authority's own certificate, PEM.
    pub pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // No two have one name: a certificate says by name whose it is.
        let name = format!("An authority for tests {:?}", key.public_key_raw());
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Issues a certificate for this host's loopback. Returns it with its key, PEM.
    pub fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let params = CertificateParams::new(names).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Issues one into the files `cert.pem` and `key.pem` of a folder, each replaced at once.
    pub fn issue_into(&self, folder: &Path) {
        let (certificate, key) = self.issue();
        put(folder, "cert.pem", &certificate);
        put(folder, "key.pem", &key);
    }
}

/// Makes a certificate for this host's loopback that signs itself and says that it is an
/// authority's, as `openssl req -x509` does. It is valid until the year `until`. Returns it with its
/// key, PEM.
#[allow(dead_code, reason = "not every test that has authorities needs one")]
pub fn self_signed(names: &[&str], until: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Creates or replaces a file at once.
pub fn put(folder: &Path, name: &str, content: &str) {
    let new = folder.join("new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, folder.join(name)).unwrap();
}
