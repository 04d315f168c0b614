//! Builds that somebody else wrote to.

use crate::common::{Repo, says, shell};
use holdpoint_measure::builds::BuildError;
use holdpoint_model::suite::{BuildSpec, Reuse};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Overwrites a file as a program does that wants nobody to see it: same length, same times.
fn overwrite_in_secret(path: &Path) {
    let before = fs::metadata(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, "x".repeat(text.len())).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    fs::set_permissions(path, before.permissions()).unwrap();
}

#[test]
fn a_build_that_somebody_wrote_to_is_made_anew() {
    let (repo, _) = Repo::with_commits(1);
    let build = repo.counted_build();
    let first = repo.builds().get("HEAD", Some(&build)).unwrap();
    overwrite_in_secret(&first.dir.join("built.txt"));
    let again = repo.builds().get("HEAD", Some(&build)).unwrap();
    assert_eq!((again.cached, repo.builds_count()), (false, 2));
    assert_eq!(fs::read_to_string(again.dir.join("built.txt")).unwrap(), "0");
    let note = again.note.unwrap();
    assert!(note.contains("built.txt had changed"), "{note}");
    assert!(repo.builds().get("HEAD", Some(&build)).unwrap().cached);
}

#[test]
fn a_build_whose_inventory_is_gone_is_made_anew() {
    let (repo, _) = Repo::with_commits(1);
    let build = repo.counted_build();
    drop(repo.builds().get("HEAD", Some(&build)).unwrap());
    for name in repo.cached(".files") {
        fs::write(repo.cache().join(name), "{").unwrap();
    }
    assert!(!repo.builds().get("HEAD", Some(&build)).unwrap().cached);
}

#[test]
fn what_measured_programs_left_is_removed_and_times_alone_are_no_change() {
    let (repo, _) = Repo::with_commits(1);
    let build = repo.counted_build();
    let first = repo.builds().get("HEAD", Some(&build)).unwrap();
    fs::create_dir(first.dir.join("__pycache__")).unwrap();
    fs::write(first.dir.join("__pycache__/a.pyc"), "planted").unwrap();
    File::options()
        .append(true)
        .open(first.dir.join("built.txt"))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    let again = repo.builds().get("HEAD", Some(&build)).unwrap();
    assert_eq!((again.cached, again.note, repo.builds_count()), (true, None, 1));
    assert!(!again.dir.join("__pycache__/a.pyc").exists());
}

#[test]
fn a_build_does_not_reach_the_other_sides_or_is_found_out() {
    for is_by_name in [true, false] {
        let (repo, commits) = Repo::with_commits(2);
        let builds = repo.builds();
        let base = builds.get(&commits[0], Some(&repo.counted_build())).unwrap();
        let folder = if is_by_name { repo.cache().display().to_string() } else { "..".to_owned() };
        let cheat = shell(&format!(
            "ls '{folder}' > seen.txt; for file in '{folder}'/*/built.txt; do echo slow > \"$file\"; done; cp src.txt built.txt"
        ));
        let head = builds.get(&commits[1], Some(&cheat)).unwrap();
        builds.check(&head, "nothing ran").unwrap();
        let seen = fs::read_to_string(head.dir.join("seen.txt")).unwrap();
        let is_kept = fs::read_to_string(base.dir.join("built.txt")).unwrap() == "0";
        assert_eq!(is_kept, seen.lines().count() == 1, "{seen}");
        assert_eq!(is_kept, builds.check(&base, "HEAD was built").is_ok());
        if !is_kept {
            println!("skipped: no namespaces here, what a build writes elsewhere is found afterwards");
        }
    }
}

/// Makes base's build, then lets head's run a script with the cache and the repository as its arguments; head's folder, in which `seen.txt`
/// lists the cache. Nothing where there are no namespaces here.
fn attacked_by_a_build(script: &str) -> Option<(Repo, Vec<String>, PathBuf)> {
    let (repo, commits) = Repo::with_commits(3);
    let builds = repo.builds();
    builds.get(&commits[0], Some(&repo.counted_build())).unwrap();
    let see = "ls \"$1\" > seen.txt; cp src.txt built.txt";
    let places = [repo.cache(), repo.dir()].map(|path| path.display().to_string());
    let command = ["sh", "-c", &format!("{script}\n{see}"), "build", &places[0], &places[1]];
    let attack = BuildSpec { command: command.map(str::to_owned).to_vec(), ..shell("") };
    let head = builds.get(&commits[1], Some(&attack)).unwrap();
    drop(builds);
    let words = ["--mount", "--map-root-user", "true"];
    let has_namespaces = Command::new("unshare").args(words).status().is_ok_and(|status| status.success());
    has_namespaces.then_some((repo, commits, head.dir))
}

#[test]
fn a_build_cannot_take_the_wall_away_and_may_give_files_to_others() {
    let script = "umount -l \"$1\"; unshare --user --map-root-user --mount umount -l \"$1\"; mount -t tmpfs x \"$1\"\n\
         if [ $(id -u) = 0 ]; then touch given; chown 4242:4242 given; stat -c %u given > owner.txt; fi";
    let Some((_repo, _, head)) = attacked_by_a_build(script) else {
        println!("skipped: no namespaces here");
        return;
    };
    let seen = fs::read_to_string(head.join("seen.txt")).unwrap();
    assert_eq!(seen.trim(), head.file_name().unwrap());
    if rustix::process::getuid().is_root() {
        assert_eq!(fs::read_to_string(head.join("owner.txt")).unwrap(), "4242\n");
    } else {
        println!("skipped in part: not root");
    }
}

#[test]
fn what_a_build_writes_to_the_repository_changes_no_other_checkout() {
    let script = "git config filter.p.smudge 'sed s/./x/'; git config --get filter.p.smudge > inside.txt || touch inside.txt\n\
         mkdir -p \"$2/.git/info\"; echo '* filter=p' > \"$2/.git/info/attributes\"";
    let Some((repo, commits, head)) = attacked_by_a_build(script) else {
        println!("skipped: no namespaces here");
        return;
    };
    let inside = fs::read_to_string(head.join("inside.txt")).unwrap();
    assert!(["", "sed s/./x/\n"].contains(&&*inside), "refused, or thrown away: {inside}");
    assert!(!repo.git(&["config", "--list"]).contains("filter.p"));
    let later = repo.builds().get(&commits[2], None).unwrap();
    assert_eq!(fs::read_to_string(later.dir.join("src.txt")).unwrap(), "2");
}

#[test]
fn nothing_is_checked_out_with_settings_that_came_while_code_ran() {
    let attributes = ["info/attributes", "* filter=p"];
    for (key, value) in
        [("filter.p.smudge", "sed s/./x/"), ("submodule.a.update", "!touch here"), attributes.into()]
    {
        let (repo, commits) = Repo::with_commits(2);
        let builds = repo.builds();
        builds.get(&commits[0], None).unwrap();
        repo.git(&["config", "branch.main.remote", "origin"]);
        builds.get(&commits[0], Some(&repo.counted_build())).unwrap();
        if key == attributes[0] {
            fs::create_dir_all(repo.dir().join(".git/info")).unwrap();
            fs::write(repo.dir().join(".git").join(key), value).unwrap();
        } else {
            repo.git(&["config", key, value]);
        }
        let error = builds.get(&commits[1], None).unwrap_err();
        says(&error, &[key, "changed while code ran", "git config --list --show-origin"]);
    }
}

#[test]
fn a_folder_that_was_swapped_and_put_back_is_found_out_and_a_file_that_came_and_went_is_not() {
    let (repo, commits) = Repo::with_commits(1);
    let builds = repo.builds();
    let build = shell("mkdir -p pkg && cp src.txt pkg/built.txt");
    let base = builds.get(&commits[0], Some(&build)).unwrap();
    let run = |script| {
        assert!(Command::new("sh").args(["-c", script]).current_dir(&base.dir).status().unwrap().success())
    };
    run("touch pkg/new new; rm pkg/new new; mkdir scratch; rmdir scratch");
    builds.check(&base, "nothing bad ran").unwrap();
    run("mv pkg x; cp -r x pkg; echo slow > pkg/built.txt; rm -r pkg; mv x pkg");
    says(&builds.check(&base, "HEAD was measured").unwrap_err(), &["pkg in "]);
}

#[test]
fn a_build_that_was_measured_may_have_new_files_and_no_changed_ones() {
    let (repo, commits) = Repo::with_commits(1);
    let builds = repo.builds();
    let good = builds.get(&commits[0], Some(&repo.counted_build())).unwrap();
    let check = |ignored: &[&str]| {
        let ignored: Vec<String> = ignored.iter().map(|pattern| (*pattern).to_owned()).collect();
        builds.check_measured(&good, &ignored, "other commits were measured")
    };
    fs::write(good.dir.join("results.csv"), "1").unwrap();
    check(&[]).unwrap();
    fs::write(good.dir.join("built.txt"), "0").unwrap();
    check(&["built.*"]).unwrap();
    says(&check(&[]).unwrap_err(), &["built.txt in ", "other commits were measured"]);
}

#[test]
fn a_program_with_two_names_in_its_build_is_read_only_and_watched() {
    let (repo, commits) = Repo::with_commits(1);
    let builds = repo.builds();
    let build = shell("cp src.txt a && chmod 755 a && ln a b");
    let mut base = builds.get(&commits[0], Some(&build)).unwrap();
    fs::write(repo.outside("shared"), "1").unwrap();
    fs::set_permissions(repo.outside("shared"), Permissions::from_mode(0o755)).unwrap();
    fs::hard_link(repo.outside("shared"), base.dir.join("c")).unwrap();
    builds.take_inventory(&mut base).unwrap();
    let mode = |name: &str| fs::metadata(base.dir.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("a"), mode("b"), mode("c")], [0o555, 0o555, 0o755]);
    // A tool's cache that shares a file with other builds may get another name for it.
    fs::hard_link(repo.outside("shared"), repo.outside("more")).unwrap();
    builds.check(&base, "nothing bad ran").unwrap();
    let rewrite = "chmod u+w a; cp a kept; echo slow > a; cat kept > a; rm kept; chmod u-w a";
    assert!(Command::new("sh").args(["-c", rewrite]).current_dir(&base.dir).status().unwrap().success());
    says(&builds.check(&base, "HEAD was measured").unwrap_err(), &["a in "]);
}

#[test]
fn a_file_of_a_build_that_is_changed_added_or_restored_is_found_out() {
    for (name, cheat) in [
        ("changed", "echo slow > built.txt"),
        ("added", "echo 1 > sitecustomize.py"),
        ("restored", "cp built.txt kept; echo 1 > built.txt; cp kept built.txt; rm kept"),
    ] {
        let (repo, commits) = Repo::with_commits(2);
        let builds = repo.builds();
        let base = builds.get(&commits[0], Some(&repo.counted_build())).unwrap();
        builds.check(&base, "nothing ran").unwrap();
        let mut somebody = Command::new("sh");
        assert!(somebody.args(["-c", cheat]).current_dir(&base.dir).status().unwrap().success());
        let error = builds.check(&base, "HEAD was measured").unwrap_err();
        says(&error, &[" in ", "changed while HEAD was measured", "thrown away"]);
        assert!(matches!(error, BuildError::Changed { .. }), "{name}");
        drop(builds);
        // It serves no later gate, whatever became of its inventory.
        let later = repo.builds().get(&commits[0], Some(&repo.counted_build())).unwrap();
        let text = fs::read_to_string(later.dir.join("built.txt")).unwrap();
        assert_eq!((later.cached, &*text), (false, "0"), "{name}");
    }
}

#[test]
fn programs_are_read_only_and_a_workshop_can_write_over_them() {
    let (repo, commits) = Repo::with_commits(2);
    let build = BuildSpec { reuse: Reuse::Always, ..shell("cat src.txt > prog && chmod 755 prog") };
    let builds = repo.builds();
    for (commit, text) in commits.iter().zip(["0", "1"]) {
        let built = builds.get_in_workshop(commit, Some(&build)).unwrap();
        let program = built.dir.join("prog");
        assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o555);
        assert_eq!(fs::read_to_string(&program).unwrap(), text);
        builds.release(&built);
    }
}

#[test]
fn a_workshop_that_somebody_wrote_to_is_not_built_on() {
    let (repo, commits) = Repo::with_commits(2);
    let build = shell("test -e built.txt || cp src.txt built.txt");
    let builds = repo.builds();
    let first = builds.get_in_workshop(&commits[0], Some(&build)).unwrap();
    builds.release(&first);
    overwrite_in_secret(&first.dir.join("built.txt"));
    let second = builds.get_in_workshop(&commits[1], Some(&build)).unwrap();
    assert_eq!(second.dir, first.dir);
    assert_eq!(fs::read_to_string(second.dir.join("built.txt")).unwrap(), "1");
}
