//! Hands the compiler's version and the build profile to the crate: a result without versions is no result.
fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = std::process::Command::new(rustc).arg("--version").output();
    let text =
        version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=HOLDPOINT_RUSTC={text}");
    println!("cargo::rustc-env=HOLDPOINT_PROFILE={profile}");
    println!("cargo::rerun-if-changed=build.rs");
}
