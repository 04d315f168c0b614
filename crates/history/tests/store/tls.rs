//! TLS to a real server, with an authority of its own.

use crate::cases::judge;
use crate::server::Server;
use holdpoint_history::{Access, HistoryError, Location, Store, open};
use std::path::Path;
use std::process::Command;

/// The authority's file and the server's, for `localhost` alone; `None` without the program that makes them.
fn make_certificates(dir: &Path) -> Option<()> {
    let openssl = |arguments: &str| {
        let done = Command::new("openssl").args(arguments.split(' ')).current_dir(dir).output().ok()?;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(())
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for authority in ["ca", "other"] {
        openssl(&format!(
            "req -x509 {key} -keyout {authority}.key -out {authority}.pem -subj /CN={authority}"
        ))?;
    }
    std::fs::write(dir.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr -subj /CN=x",
    )?;
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
    )
}

/// Whether the connection of a store is encrypted.
fn is_encrypted(server: &Server, _open: &dyn Store) -> bool {
    let question = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                    WHERE application_name = 'holdpoint'";
    server.ask("tls", question) == "t"
}

/// Whether there is a server and a program that makes certificates to try it with.
pub fn a_server_is_believed_as_far_as_its_url_says() -> bool {
    let dir = tempfile::tempdir().unwrap();
    if make_certificates(dir.path()).is_none() {
        return false;
    }
    let Some(server) = Server::start_with_port("-c fsync=off") else { return false };
    server.create_database("tls");
    let url = |host: &str, query: &str| {
        let authority = |name: &str| dir.path().join(name).display().to_string().replace('/', "%2F");
        let query = query.replace("CA", &authority("ca.pem")).replace("OTHER", &authority("other.pem"));
        Location::parse(&format!("postgres://holdpoint@{host}:{}/tls?{query}", server.port))
    };
    let open = |host: &str, query: &str| open(&url(host, query), Access::Create, judge);
    let refused = |host: &str, query: &str| {
        let error = open(host, query).err().unwrap();
        assert!(matches!(error, HistoryError::Place { .. }) && error.is_input(), "{error}");
        let words = error.to_string();
        assert!(!words.contains('\n') && words.starts_with("postgres://holdpoint@"), "{words}");
        words.split_once("/tls: ").unwrap().1.to_owned()
    };

    // Without TLS on the server: only those who ask for it are refused.
    for query in ["", "sslmode=prefer", "sslmode=disable"] {
        assert!(!is_encrypted(&server, &*open("localhost", query).unwrap()), "{query}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let words = refused("localhost", &format!("sslmode={mode}"));
        assert_eq!(words, format!("sslmode={mode} is asked for, and the server offers no TLS"));
    }

    server.offer_tls(&dir.path().join("server.crt"), &dir.path().join("server.key"));
    assert!(!is_encrypted(&server, &*open("localhost", "sslmode=disable").unwrap()));
    for (host, query) in [
        ("localhost", ""),
        ("127.0.0.1", "sslmode=prefer"),
        ("127.0.0.1", "sslmode=require"),
        ("127.0.0.1", "sslmode=require&sslrootcert=CA"),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=CA"),
        ("localhost", "sslmode=verify-full&sslrootcert=CA"),
    ] {
        assert!(is_encrypted(&server, &*open(host, query).unwrap()), "{host} {query}");
    }

    let other = dir.path().join("other.pem").display().to_string();
    for mode in ["require", "verify-ca", "verify-full"] {
        let (query, name) = match mode {
            // With an authority, it is held against that.
            "require" => (format!("sslmode={mode}&sslrootcert=OTHER"), "verify-ca"),
            mode => (format!("sslmode={mode}&sslrootcert=OTHER"), mode),
        };
        assert_eq!(
            refused("localhost", &query),
            format!(
                "sslmode={name}: the server's certificate is refused: it comes from no authority in {other}"
            )
        );
    }
    assert_eq!(
        refused("localhost", "sslmode=verify-full"),
        "sslmode=verify-full: the server's certificate is refused: it comes from no authority that is publicly known; \
         name its own with sslrootcert=FILE"
    );
    assert_eq!(
        refused("127.0.0.1", "sslmode=verify-full&sslrootcert=CA"),
        "sslmode=verify-full: the server's certificate is refused: it is for localhost, not for 127.0.0.1"
    );
    true
}
