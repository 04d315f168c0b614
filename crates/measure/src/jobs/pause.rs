//! Stops the processes of a job for a while, so that they cannot disturb what happens meanwhile.

use super::proc::{self, Process};
use super::{Job, stray};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io;
use std::time::{Duration, Instant};

/// A process that is in the kernel stops when it leaves it; one that starts others needs several passes.
const STOP_MAX: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_micros(200);

/// Processes that stand still until this is dropped.
#[derive(Debug, Default)]
pub struct Paused(Vec<Pid>);

impl Job {
    /// Stops every process of the job, those that left its group included, and waits until none of their threads runs.
    pub(crate) fn pause(&self) -> io::Result<Paused> {
        // Dropped on failure too, which continues them.
        let mut paused = Paused(vec![self.0]);
        let start = Instant::now();
        // Where no process can be listed, its group has to do.
        let _ = kill_process_group(self.0, Signal::STOP);
        loop {
            let mut moving = self.processes();
            moving.retain(|process| !process.is_still());
            if moving.is_empty() {
                return Ok(paused);
            }
            if start.elapsed() > STOP_MAX {
                let problem = format!("process {} does not stop", moving[0].pid.as_raw_nonzero());
                return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
            }
            for Process { pid, .. } in moving {
                // One that has just ended need not be stopped.
                let _ = kill_process(pid, Signal::STOP);
                if !paused.0.contains(&pid) {
                    paused.0.push(pid);
                }
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Its living processes, and those of unknown origin, which may be its own.
    fn processes(&self) -> Vec<Process> {
        let mut all: Vec<Process> = proc::all().filter(|process| !process.is_dead).collect();
        let mut found = stray::take_suspects(self.0, &mut all);
        let mut at = 0;
        while let Some(parent) = found.get(at).map(|process| process.pid) {
            found.extend(all.extract_if(.., |process| process.parent == Some(parent)));
            at += 1;
        }
        found
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill_process_group(*pid, Signal::CONT);
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    #[test]
    fn a_job_stands_still_with_what_left_its_group_and_goes_on_afterwards() {
        let script =
            "exec 3<&0; env -u HOLDPOINT_JOB setsid sh -c 'echo $$; read line <&3; echo went on' & wait";
        let mut command = holdpoint_process::command("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let (mut child, job) = super::super::spawn(&mut command).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut pid = String::new();
        lines.read_line(&mut pid).unwrap();
        let away = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        let is_still = |pid| proc::all().any(|process| process.pid == pid && process.is_still());
        let paused = job.pause().unwrap();
        assert!(is_still(job.0) && is_still(away), "{paused:?}");
        drop(paused);
        // Its input ends here.
        drop(child.stdin.take());
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "went on\n");
        child.wait().unwrap();
    }

    #[test]
    fn a_job_that_has_ended_is_still() {
        let (mut child, job) = super::super::spawn(&mut holdpoint_process::command("true")).unwrap();
        assert!(job.wait(STOP_MAX));
        drop(job.pause().unwrap());
        child.wait().unwrap();
    }
}
