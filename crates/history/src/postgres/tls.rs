//! TLS to a PostgreSQL server. `sslmode` and `sslrootcert` of a URL mean what they mean to PostgreSQL's own client.

use percent_encoding::percent_decode_str;
use postgres::Config;
use postgres::config::{Host, SslMode};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a connection is protected, from the URL of the server.
#[derive(Clone)]
pub struct Tls {
    connector: MakeRustlsConnect,
    mode: Mode,
    /// The authorities that are believed, in words.
    authorities: String,
}

/// `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Disable,
    /// With TLS if the server has it; its certificate is not looked at.
    Prefer,
    /// With TLS; the certificate is looked at only if `sslrootcert` names its authority.
    Require,
    /// The certificate must come from a known authority.
    VerifyCa,
    /// And be the host's.
    VerifyFull,
}

impl Mode {
    const ALL: [(&str, Self); 5] = [
        ("disable", Self::Disable),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// The settings of a URL that are read here, and the URL without them.
struct Parsed {
    url: String,
    mode: Option<Mode>,
    root_file: Option<String>,
}

/// The server's configuration and how it is reached.
pub fn configure(url: &str) -> Result<(Config, Tls), String> {
    let parsed = parse(url)?;
    let mut config: Config = parsed.url.parse().map_err(|error| format!("not a PostgreSQL URL: {error}"))?;
    let is_local = |host: &Host| matches!(host, Host::Unix(_));
    let mode = match parsed.mode.unwrap_or(Mode::Prefer) {
        // Nobody listens in on a Unix socket, and servers offer no TLS there.
        _ if !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_local) => Mode::Disable,
        Mode::Require if parsed.root_file.is_some() => Mode::VerifyCa,
        mode => mode,
    };
    config.ssl_mode(match mode {
        Mode::Disable => SslMode::Disable,
        Mode::Prefer => SslMode::Prefer,
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
    });
    let authorities = match &parsed.root_file {
        Some(file) => format!("in {file}"),
        None => "that is publicly known; name its own with sslrootcert=FILE".to_owned(),
    };
    let connector = MakeRustlsConnect::new(client_config(mode, parsed.root_file.as_deref())?);
    Ok((config, Tls { connector, mode, authorities }))
}

fn parse(url: &str) -> Result<Parsed, String> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut parsed = Parsed { url: base.to_owned(), mode: None, root_file: None };
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8_lossy();
        match name {
            "sslmode" => parsed.mode = Some(parse_mode(&value)?),
            "sslrootcert" => parsed.root_file = Some(value.into_owned()),
            _ => rest.push(pair),
        }
    }
    if !rest.is_empty() {
        parsed.url = format!("{base}?{}", rest.join("&"));
    }
    Ok(parsed)
}

fn parse_mode(name: &str) -> Result<Mode, String> {
    let known = Mode::ALL.iter().find(|(known, _)| *known == name);
    known.map(|(_, mode)| *mode).ok_or_else(|| {
        let names: Vec<&str> = Mode::ALL.iter().map(|(name, _)| *name).collect();
        format!("sslmode={name} is none of {}", names.join(", "))
    })
}

fn client_config(mode: Mode, root_file: Option<&str>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let is_checked = matches!(mode, Mode::VerifyCa | Mode::VerifyFull);
    let chain = is_checked.then(|| chain_verifier(root_file, &provider)).transpose()?;
    let verifier = Verifier { chain, is_name_checked: mode == Mode::VerifyFull, provider: provider.clone() };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

fn chain_verifier(
    root_file: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let roots = match root_file {
        Some(file) => read_roots(Path::new(file)).map_err(|why| format!("sslrootcert={file}: {why}"))?,
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
    };
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| error.to_string())
}

fn read_roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| words(&error))? {
        let certificate = certificate.map_err(|error| words(&error))?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("it holds no certificate in PEM format".to_owned()) } else { Ok(roots) }
}

/// The error's innermost words, on one line.
fn words(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

impl Tls {
    pub(crate) fn connector(&self) -> MakeRustlsConnect {
        self.connector.clone()
    }

    /// Why a connection was refused for the sake of TLS; `None` for another reason.
    pub fn refusal(&self, error: &postgres::Error) -> Option<String> {
        let mode = self.mode.name();
        if let Some(error) = find_tls_error(error) {
            let why = match error {
                TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
                    format!("it comes from no authority {}", self.authorities)
                }
                TlsError::InvalidCertificate(CertificateError::NotValidForNameContext {
                    expected,
                    presented,
                }) => {
                    format!("it is for {}, not for {}", names(presented), expected.to_str())
                }
                TlsError::InvalidCertificate(why) => why.to_string(),
                other => return Some(format!("TLS failed: {other}")),
            };
            return Some(format!("sslmode={mode}: the server's certificate is refused: {why}"));
        }
        let is_without = chain(error).any(|error| error.to_string() == "server does not support TLS");
        is_without.then(|| format!("sslmode={mode} is asked for, and the server offers no TLS"))
    }
}

/// The names in a certificate, which come as `DnsName("db.example.org")`.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    if presented.is_empty() {
        "no host".to_owned()
    } else {
        presented.iter().map(bare).collect::<Vec<_>>().join(", ")
    }
}

fn chain<'e>(error: &'e postgres::Error) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

fn find_tls_error(error: &postgres::Error) -> Option<&TlsError> {
    // An I/O error does not name the error in it as its source.
    chain(error).find_map(|error| error.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref())
}

/// Checks a server's certificate as far as the mode asks for.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    is_name_checked: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The name is looked at last: a certificate that fails by it alone comes from a known authority.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_name_checked => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> Mode {
        configure(url).unwrap().1.mode
    }

    #[test]
    fn modes_are_those_of_postgresql() {
        assert_eq!(mode("postgres://h/db"), Mode::Prefer);
        for (name, expected) in Mode::ALL {
            assert_eq!(mode(&format!("postgres://h/db?sslmode={name}")), expected);
            // Whoever listens in on a socket file is root already.
            assert_eq!(mode(&format!("postgres:///db?host=/run&sslmode={name}")), Mode::Disable);
        }
    }

    #[test]
    fn other_settings_of_the_url_stay() {
        let parsed = parse("postgres://h/db?a=1&sslmode=require&sslrootcert=%2Fetc%2Fca.pem&b=2").unwrap();
        assert_eq!(parsed.url, "postgres://h/db?a=1&b=2");
        assert_eq!((parsed.mode, parsed.root_file.as_deref()), (Some(Mode::Require), Some("/etc/ca.pem")));
    }

    #[test]
    fn settings_that_cannot_be_followed_are_refused() {
        let refused = |url: &str| configure(url).err().unwrap();
        assert!(
            refused("postgres://h/db?sslmode=allow").starts_with("sslmode=allow is none of disable, prefer")
        );
        let missing = refused("postgres://h/db?sslmode=verify-ca&sslrootcert=/no/such.pem");
        assert!(
            missing.starts_with("sslrootcert=/no/such.pem: ") && missing.contains("No such file"),
            "{missing}"
        );
    }
}
