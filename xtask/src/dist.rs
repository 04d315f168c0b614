//! `cargo xtask dist`: the files of a release, in `target/dist`. The wheel carries the binary, and the archive has the same binary
//! with completions and man pages. Both run on Linux with glibc 2.17 or later.

use clap_complete::Shell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes the files; the problem, if there is one.
pub fn make(root: &Path) -> Vec<String> {
    try_make(root).err().into_iter().collect()
}

fn try_make(root: &Path) -> Result<(), String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let dist = target.join("dist");
    let _ = fs::remove_dir_all(&dist);
    let wheel = make_wheel(root, &target, &dist)?;
    let archive = make_archive(root, &dist, &wheel)?;
    let binary = dist.join("unpacked").join(archive_name()).join("holdpoint");
    attest(&dist, &binary, &[&wheel, &archive])?;
    remove(&dist.join("unpacked"))?;
    run(&dist, "sh", ["-c", "sha256sum *.whl *.tar.gz *.json > SHA256SUMS && cat SHA256SUMS"])
}

/// Of the archive, and of the folder in it.
fn archive_name() -> String {
    format!("holdpoint-{VERSION}-{TARGET}")
}

/// The wheel, by the tools that python/requirements.txt pins.
fn make_wheel(root: &Path, target: &Path, dist: &Path) -> Result<PathBuf, String> {
    let tools = target.join("dist-tools");
    if !tools.join("bin/pip").exists() {
        run(root, "python3", [OsStr::new("-m"), OsStr::new("venv"), tools.as_os_str()])?;
    }
    let pip = tools.join("bin/pip");
    run(root, &pip, ["install", "--quiet", "--require-hashes", "--requirement", "python/requirements.txt"])?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tools.join("bin").display());
    let flags =
        ["build", "--release", "--locked", "--zig", "--compatibility", "manylinux2014", "--target", TARGET];
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin.args(flags).arg("--out").arg(dist).current_dir(root.join("python"));
    finish(maturin.env("PATH", path).env("CARGO_TARGET_DIR", target))?;
    let found = fs::read_dir(dist).map_err(|error| format!("{}: {error}", dist.display()))?;
    let mut paths = found.flatten().map(|entry| entry.path());
    let wheel = paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.ok_or_else(|| format!("{}: maturin left no wheel", dist.display()))
}

/// The wheel's binary with licences, README, completions and man pages.
fn make_archive(root: &Path, dist: &Path, wheel: &Path) -> Result<PathBuf, String> {
    let name = archive_name();
    let folder = dist.join("unpacked").join(&name);
    let parts = ["completions", "man"].map(|part| folder.join(part));
    parts.iter().try_for_each(fs::create_dir_all).map_err(|error| error.to_string())?;
    let opened = dist.join("unpacked/wheel");
    let words = ["-m", "zipfile", "-e"].map(OsStr::new).into_iter();
    run(dist, "python3", words.chain([wheel.as_os_str(), opened.as_os_str()]))?;
    let script = opened.join(format!("holdpoint-{VERSION}.data/scripts/holdpoint"));
    let (mode, binary) = (fs::Permissions::from_mode(0o755), folder.join("holdpoint"));
    fs::copy(script, &binary).and_then(|_| fs::set_permissions(&binary, mode)).map_err(|e| e.to_string())?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        fs::copy(root.join(file), folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
    }
    let mut command = without_help(holdpoint_cli::args::command());
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut command, "holdpoint", &parts[0])
            .map_err(|error| error.to_string())?;
    }
    clap_mangen::generate_to(command, &parts[1]).map_err(|error| error.to_string())?;
    let archive = dist.join(format!("{name}.tar.gz"));
    // The same bytes from the same files, whoever makes it and when.
    let pack =
        "tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - \"$1\" | gzip -n9 > \"$2\"";
    let words = ["-c", pack, "pack", &name].map(OsStr::new).into_iter().chain([archive.as_os_str()]);
    run(&dist.join("unpacked"), "sh", words)?;
    Ok(archive)
}

/// A page for `gate`, none for `help gate`.
fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// An attestation of the files by the binary itself, from what it sees here. A release job adds its gates and signs it.
fn attest(dist: &Path, binary: &Path, files: &[&PathBuf]) -> Result<(), String> {
    let evidence = dist.join("unpacked/evidence");
    fs::create_dir_all(&evidence).map_err(|error| error.to_string())?;
    let doctor = "\"$1\" doctor --format json > unpacked/evidence/doctor.json";
    run(dist, "sh", [OsStr::new("-c"), OsStr::new(doctor), OsStr::new("doctor"), binary.as_os_str()])?;
    let mut attest = Command::new(binary);
    attest.args(["attest", "create", "--quiet", "--release-dir", ".", "--artifacts"]).arg(&evidence);
    attest.args(["--output-json", "release_attestation.json", "--release-tag"]).arg(format!("v{VERSION}"));
    for file in files {
        attest.arg("--release-file").arg(file.file_name().unwrap_or_default());
    }
    // Without the gates of a release it is not a pass, and says so by its exit code.
    attest.current_dir(dist).status().map_err(|error| error.to_string())?;
    let is_there = dist.join("release_attestation.json").exists();
    is_there.then_some(()).ok_or_else(|| "no attestation was written".to_owned())
}

fn remove(folder: &Path) -> Result<(), String> {
    fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn run<A: AsRef<OsStr>>(
    folder: &Path,
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), String> {
    finish(Command::new(program).args(arguments).current_dir(folder))
}

fn finish(command: &mut Command) -> Result<(), String> {
    let line = format!("{command:?}");
    let status = command.status().map_err(|error| format!("{line}: {error}"))?;
    status.success().then_some(()).ok_or_else(|| format!("{line}: {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leon::Template;
    use std::collections::HashMap;

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        fs::read_to_string(root.join(path)).expect(path)
    }

    /// By the rules of https://github.com/cargo-bins/cargo-binstall/blob/main/SUPPORT.md.
    #[test]
    fn binstall_finds_the_archives_that_a_release_has() {
        let manifest: toml::Table = read("crates/cli/Cargo.toml").parse().expect("a manifest");
        let binstall = &manifest["package"]["metadata"]["binstall"];
        let root: toml::Table = read("Cargo.toml").parse().expect("a manifest");
        let repository = root["workspace"]["package"]["repository"].as_str().expect("a repository");
        for target in
            [TARGET, "x86_64-unknown-linux-musl", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"]
        {
            let values = HashMap::from([
                ("name", "holdpoint"),
                ("version", VERSION),
                ("repo", repository),
                ("bin", manifest["bin"][0]["name"].as_str().expect("a program")),
                ("target", target),
                ("binary-ext", ""),
            ]);
            let render = |key: &str| {
                let template = binstall[key].as_str().expect("a template");
                Template::parse(template).expect("a template").render(&values).expect("known names only")
            };
            let name = archive_name().replace(TARGET, target);
            assert_eq!(render("pkg-url"), format!("{repository}/releases/download/v{VERSION}/{name}.tar.gz"));
            assert_eq!(render("bin-dir"), format!("{name}/holdpoint"));
        }
        assert_eq!(binstall["pkg-fmt"].as_str(), Some("tgz"));
        // The release workflow names the others by the same rule.
        let release = read(".github/workflows/release.yml");
        assert!(release.contains(r#"name="holdpoint-${GITHUB_REF_NAME#v}-$TARGET""#));
        assert!(release.contains(r#"tar -czf "dist/$name.tar.gz" -C dist "$name""#));
    }
}
