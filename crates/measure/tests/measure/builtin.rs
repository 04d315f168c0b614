//! The built-in ops, in process and behind the protocol.

use crate::common::suite;
use holdpoint_measure::worker::{Builtin, Prepared, PreparedInfo, Worker, serve};
use holdpoint_model::Suite;
use holdpoint_model::protocol::{Message, Request, Response, RunRequest};
use holdpoint_model::suite::Work;

/// Two small ops, and a command that is none of the built-in worker's business.
pub const SMALL: &str = "
[[workload]]
name = \"pack\"
op = \"tile_pack\"
shape = [1, 4, 32, 32]
params = { tile_size = 8, indices = [0, 5, 9] }
[[workload]]
name = \"gate\"
op = \"fusion_gate\"
shape = [1, 4, 8, 8]
[[workload]]
name = \"true\"
command = [\"true\"]
";

pub fn small() -> Suite {
    suite("", SMALL)
}

/// What the served worker answers to these requests.
pub fn ask(requests: &[Request]) -> Vec<Response> {
    let messages = (1..).zip(requests).map(|(id, body)| Message { id, body });
    let lines: String = messages.map(|message| serde_json::to_string(&message).unwrap() + "\n").collect();
    let answers = ask_messages(lines.as_bytes());
    assert!((1..).zip(&answers).all(|(id, answer)| answer.id == id), "{answers:?}");
    answers.into_iter().map(|answer| answer.body).collect()
}

/// What the served worker answers to these bytes.
pub fn ask_lines(lines: &[u8]) -> Vec<Response> {
    ask_messages(lines).into_iter().map(|message| message.body).collect()
}

fn ask_messages(lines: &[u8]) -> Vec<Message<Response>> {
    let mut output = Vec::new();
    serve(&mut Builtin::new(&small().workloads, 0.0), lines, &mut output).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.is_empty() || output.ends_with('\n'));
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn prepare(workload: &str) -> Request {
    Request::Prepare { workload: workload.to_owned(), seed: 7 }
}

pub fn run(workload: &str, samples_count: u64, calls_per_sample: u64) -> Request {
    Request::Run(RunRequest { workload: workload.to_owned(), seed: 7, samples_count, calls_per_sample })
}

fn verify(workload: &str) -> Request {
    Request::Verify { workload: workload.to_owned() }
}

#[test]
fn the_served_worker_says_what_the_one_in_process_says() {
    let mut worker = Builtin::new(&small().workloads, 0.0);
    let names: Vec<String> = worker.list().unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["pack", "gate"]);
    let mut expected = vec![Response::Workloads { workloads: worker.list().unwrap() }];
    let mut requests = vec![Request::List {}];
    for workload in names {
        requests.extend([prepare(&workload), verify(&workload)]);
        let Prepared::Ready(known) = worker.prepare(&workload, 7).unwrap() else {
            panic!("{workload} is skipped")
        };
        let PreparedInfo { work, kernel } = *known;
        let answer = worker.verify(&workload).unwrap();
        expected.extend([
            Response::Prepared { workload: workload.clone(), work, kernel },
            Response::Verified { workload, answer },
        ]);
    }
    assert_eq!(ask(&requests), expected);
}

#[test]
fn the_served_worker_runs_as_asked_and_checks_what_it_ran() {
    let run = run("pack", 5, 3);
    let answers = ask(&[prepare("pack"), run, verify("pack")]);
    let [
        Response::Prepared { work: Some(work), .. },
        Response::Samples(result),
        Response::Verified { answer, .. },
    ] = answers.as_slice()
    else {
        panic!("{answers:?}")
    };
    assert!(*work != Work::default());
    assert_eq!((result.elapsed_ns.len(), result.calls_per_sample), (5, 3));
    assert!(answer.as_ref().is_some_and(|answer| answer.passed && answer.values_count > 0));
}

#[test]
fn a_released_workload_must_be_prepared_again() {
    let release = Request::Release { workload: "pack".to_owned() };
    let answers = ask(&[prepare("pack"), release, verify("pack")]);
    assert_eq!(answers[1], Response::Released { workload: "pack".to_owned() });
    let Response::Error { message, .. } = &answers[2] else { panic!("{answers:?}") };
    assert!(message.contains("\"pack\" is not known here, or not prepared"), "{message}");
}

#[test]
fn the_farewell_is_the_last_answer() {
    assert_eq!(ask(&[Request::Bye {}, Request::List {}]), [Response::Bye {}]);
    assert_eq!(ask(&[]), []);
}
