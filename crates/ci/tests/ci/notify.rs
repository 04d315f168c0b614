//! Mail and webhooks, received.

use crate::server::{Reply, Server};
use crate::smtp::{MailServer, drip};
use holdpoint_ci::notify::{Delivery, Environment, LIMIT, Message, NotifyError, Outcome, notify, rehearse};
use holdpoint_model::Verdict;
use holdpoint_model::notice::Notice;
use holdpoint_model::notify::NotifyConfig;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn notice(verdict: Verdict) -> Notice {
    Notice {
        schema_version: 1,
        suite: "cpu".to_owned(),
        verdict,
        summary: "größer".to_owned(),
        commit: None,
        machine: None,
        run_url: None,
        rows: Vec::new(),
        rows_left_out: 0,
    }
}

/// Tells all targets of the text; variables are name and value.
fn tell(config: &str, verdict: Verdict, variables: &[(&str, &str)]) -> (Vec<Outcome>, Vec<u64>) {
    tell_within(LIMIT, config, verdict, variables)
}

fn tell_within(
    limit: Duration,
    config: &str,
    verdict: Verdict,
    variables: &[(&str, &str)],
) -> (Vec<Outcome>, Vec<u64>) {
    let config = NotifyConfig::parse(&format!("schema_version = 1\n{config}")).unwrap();
    let waits: Arc<Mutex<Vec<u64>>> = Arc::default();
    let kept = Arc::clone(&waits);
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let pause = Arc::new(move |wait: Duration| kept.lock().unwrap().push(wait.as_secs()));
    let document = notice(verdict);
    let message =
        Message { notice: &document, subject: "[holdpoint] größer", plain: "line\n.dot\n", slack: "*x*" };
    let outcomes = notify(&config, message, &Environment { variable: &variable, pause, limit });
    let waits = waits.lock().unwrap().clone();
    (outcomes, waits)
}

fn mail_config(port: u16, to: &str, more: &str) -> String {
    format!(
        "[[mail]]\nname = \"team\"\nserver = \"127.0.0.1\"\nport = {port}\nsecurity = \"none\"\nfrom = \"holdpoint <hp@example.org>\"\nto = [{to}]\n{more}\n"
    )
}

#[test]
fn a_mail_arrives_with_subject_text_and_everybody_it_is_for() {
    let server = MailServer::start("");
    let more = "username_env = \"U\"\npassword_env = \"P\"";
    let config = mail_config(server.port, "\"a@example.org\", \"Bee <b@example.org>\"", more);
    let (outcomes, _) = tell(&config, Verdict::Regressed, &[("U", "user"), ("P", "hunter2")]);
    assert_eq!(outcomes[0].result, Ok(Delivery::Sent), "{outcomes:?}");
    assert_eq!(outcomes[0].target, "mail team");
    let mail = server.mails.recv().unwrap();
    for wanted in
        ["AUTH PLAIN", "MAIL FROM:<hp@example.org>", "RCPT TO:<a@example.org>", "RCPT TO:<b@example.org>"]
    {
        assert!(
            mail.commands.iter().any(|command| command.starts_with(wanted)),
            "{wanted}: {:?}",
            mail.commands
        );
    }
    for wanted in [
        "From: holdpoint <hp@example.org>",
        "Subject: ",
        "Content-Type: text/plain; charset=utf-8",
        "\nline\n..dot\n",
    ] {
        assert!(mail.text.contains(wanted), "{wanted}: {}", mail.text);
    }
    assert!(!mail.text.contains("größer"), "a subject travels encoded: {}", mail.text);
}

#[test]
fn a_webhook_gets_the_document_signed_and_slack_its_text() {
    let server = Server::start(|_, _| Reply::json(200, json!({})));
    let config = format!(
        "[[slack]]\nname = \"room\"\nurl_env = \"S\"\n[[webhook]]\nname = \"hook\"\nurl = \"{}/hook\"\ntoken_env = \"T\"\nsecret_env = \"K\"\n",
        server.url
    );
    let slack_url = format!("{}/services/s3cret", server.url);
    let (outcomes, _) = tell(&config, Verdict::Broken, &[("S", &slack_url), ("T", "t0ken"), ("K", "key")]);
    assert!(outcomes.iter().all(|outcome| outcome.result == Ok(Delivery::Sent)), "{outcomes:?}");
    let mut requests = server.requests();
    requests.sort_by_key(|request| request.path() == "/hook");
    let [slack, hook] = requests.try_into().unwrap();
    assert_eq!((slack.path(), slack.json()["text"].as_str()), ("/services/s3cret", Some("*x*")));
    assert_eq!(slack.json()["link_names"], false);
    assert_eq!(serde_json::from_str::<Notice>(&hook.body).unwrap(), notice(Verdict::Broken));
    assert_eq!(hook.header("authorization"), Some("Bearer t0ken"));
    let signature = hook.header("x-holdpoint-signature-256").unwrap();
    assert!(signature.starts_with("sha256=") && signature.len() == 7 + 64);
    assert_eq!(hook.header("content-type"), Some("application/json"));
}

#[test]
fn one_that_fails_does_not_keep_the_others_from_being_told() {
    let server = Server::start(|request, _| match request.path() {
        "/bad" => Reply::json(410, json!({})),
        _ => Reply::json(200, json!({})),
    });
    let mail = MailServer::start("nobody");
    let hook = |name: &str, url: &str| format!("[[webhook]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    let config = mail_config(mail.port, "\"nobody@example.org\"", "")
        + &mail_config(mail.port, "\"not an address\"", "")
        + "[[slack]]\nname = \"unset\"\nurl_env = \"NOT_SET\"\n"
        + &hook("bad", &format!("{}/bad", server.url))
        + &hook("clear", "http://example.org/hook")
        + &hook("good", &format!("{}/good", server.url));
    let (outcomes, _) = tell(&config, Verdict::Regressed, &[]);
    let results: Vec<String> = outcomes
        .iter()
        .map(|outcome| match &outcome.result {
            Ok(told) => format!("{told:?}"),
            Err(NotifyError::Setting(what)) => format!("setting: {what}"),
            Err(NotifyError::Failed(what)) => format!("failed: {what}"),
        })
        .collect();
    let wanted = [
        "no such person",
        "setting: \"not an address\" is no address",
        "setting: the environment variable NOT_SET is not set",
        "failed: it answered 410",
        "setting: its address must begin with https://",
        "Sent",
    ];
    for (is, wanted) in results.iter().zip(wanted) {
        assert!(is.contains(wanted), "{wanted}: {results:?}");
    }
    assert_eq!(results.len(), wanted.len());
}

#[test]
fn a_receiver_that_is_busy_is_tried_again_and_one_that_stays_so_is_given_up() {
    let server = Server::start(|_, count| match count {
        0 => Reply::json(429, json!({})).with("Retry-After", "5"),
        1 => Reply::json(503, json!({})),
        _ => Reply::json(204, json!({})),
    });
    let config = format!("[[webhook]]\nname = \"hook\"\nurl = \"{}\"\n", server.url);
    let (outcomes, waits) = tell(&config, Verdict::Regressed, &[]);
    assert_eq!((&outcomes[0].result, waits), (&Ok(Delivery::Sent), vec![5, 4]));
    let server = Server::start(|_, _| Reply::json(503, json!({})).with("Retry-After", "999"));
    let config = "[[slack]]\nname = \"room\"\nurl_env = \"S\"\n";
    let (outcomes, waits) = tell(config, Verdict::Regressed, &[("S", &format!("{}/s3cret", server.url))]);
    let error = outcomes[0].result.as_ref().unwrap_err().to_string();
    assert!(error.contains("503") && !error.contains("s3cret") && waits.is_empty(), "{error}");
    let (outcomes, waits) = tell(config, Verdict::Regressed, &[("S", "http://127.0.0.1:1/s3cret")]);
    let error = outcomes[0].result.as_ref().unwrap_err().to_string();
    assert!(!error.contains("s3cret") && waits.len() == 2, "{error}");
}

fn rehearsed(config: &NotifyConfig, verdict: Verdict, variables: &[(&str, &str)]) -> Vec<Outcome> {
    let document = notice(verdict);
    let message = Message { notice: &document, subject: "s", plain: "p", slack: "x" };
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let pause = Arc::new(|_: Duration| panic!("nothing is tried"));
    rehearse(config, message, &Environment { variable: &variable, pause, limit: LIMIT })
}

#[test]
fn a_rehearsal_refuses_what_would_be_refused_and_asks_for_no_secret() {
    let config = "[[slack]]\nname = \"s\"\nurl_env = \"S\"\n\
                  [[webhook]]\nname = \"w\"\nurl = \"http://example.org/x\"\n\
                  [[webhook]]\nname = \"t\"\nurl = \"HTTPS://example.org/x\"\ntoken_env = \"T\"\n";
    let clear = mail_config(25, "\"a@example.org\"", "username_env = \"U\"\npassword_env = \"P\"\n")
        .replace("127.0.0.1", "mail.example.org");
    let config = format!("schema_version = 1\n{config}{clear}");
    let config = NotifyConfig::parse(&config).unwrap();
    let said = |variables: &[(&str, &str)]| {
        let outcomes = rehearsed(&config, Verdict::Broken, variables);
        outcomes.iter().map(|outcome| format!("{:?}", outcome.result)).collect::<Vec<_>>().join("\n")
    };
    let nothing_set = said(&[]);
    let wanted = ["not sent in the clear", "Ok(Sent)", "must begin with https://", "Ok(Sent)"];
    for (line, wanted) in nothing_set.lines().zip(wanted) {
        assert!(line.contains(wanted), "{nothing_set}");
    }
    let wrong = said(&[("S", "https://exa mple/x"), ("T", "a b")]);
    assert!(
        wrong.contains("its address is not valid") && wrong.contains("its token is not valid"),
        "{wrong}"
    );
}

#[test]
fn an_address_or_a_token_that_is_none_is_a_setting_and_is_not_tried_again() {
    let config = "[[slack]]\nname = \"s\"\nurl_env = \"S\"\n\
                  [[webhook]]\nname = \"t\"\nurl = \"https://example.org/x\"\ntoken_env = \"T\"\n";
    for address in ["https://exa mple", "https://a<b>/x"] {
        let (outcomes, waits) = tell(config, Verdict::Broken, &[("S", address), ("T", "s3cret\u{7f}x y")]);
        for outcome in &outcomes {
            assert!(matches!(outcome.result, Err(NotifyError::Setting(_))), "{address}: {outcomes:?}");
        }
        assert!(waits.is_empty() && !format!("{outcomes:?}").contains("s3cret"), "{outcomes:?}");
    }
}

#[test]
fn what_a_receiver_says_is_told_short_and_without_secrets() {
    let server = Server::start(|request, _| match request.path() {
        "/page" => Reply::text(400, "<html>"),
        path => Reply::text(400, format!("invalid_payload t0ken {path}\n{}", "x".repeat(900))),
    });
    let hook = |path: &str| {
        format!("[[webhook]]\nname = \"w\"\nurl = \"{}{path}\"\ntoken_env = \"T\"\n", server.url)
    };
    let slack = "[[slack]]\nname = \"s\"\nurl_env = \"S\"\n";
    let secret = format!("{}/services/s3cret-part", server.url);
    let config = hook("/x") + &hook("/page") + slack;
    let (mut outcomes, _) = tell(&config, Verdict::Broken, &[("T", "t0ken"), ("S", &secret)]);
    let told = outcomes.remove(0).result.unwrap_err().to_string();
    assert!(told.contains("invalid_payload t0ken …") && !told.contains("s3cret"), "{told}");
    let said = |at: usize| outcomes[at].result.as_ref().unwrap_err().to_string();
    assert!(said(0).starts_with("it answered 400: invalid_payload …") && said(0).len() < 300, "{}", said(0));
    assert_eq!(said(1), "it answered 400");
}

#[test]
fn a_mail_server_that_repeats_the_password_is_not_repeated() {
    let more = "username_env = \"U\"\npassword_env = \"P\"";
    let variables = [("U", "perf@example.org"), ("P", "hunter2-hunter2")];
    for echo in ["{line}", "{decoded}", "hunter2-hunter2 and perf@example.org"] {
        let server = MailServer::start_echo(echo);
        let (outcomes, _) =
            tell(&mail_config(server.port, "\"a@example.org\"", more), Verdict::Broken, &variables);
        let error = outcomes[0].result.as_ref().unwrap_err().to_string();
        assert!(error.contains("535") || error.contains("refused"), "{error}");
        for secret in
            ["hunter2", "perf@example.org", "aHVudGVyMi", "h1bnRlcjIt", "odW50ZXIy", "cGVyZkBleGFtcGxl"]
        {
            assert!(!error.contains(secret), "{secret}: {error}");
        }
    }
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_given_up_and_costs_the_others_nothing() {
    let good = Server::start(|_, _| Reply::json(200, json!({})));
    let (mail, hook) = (drip(b"220-"), drip(b"HTTP/1.1 200 X\r\ncontent-length: 99999\r\n\r\n"));
    let config = mail_config(mail, "\"a@example.org\"", "")
        + &format!("[[webhook]]\nname = \"slow\"\nurl = \"http://127.0.0.1:{hook}/x\"\n")
        + &format!("[[webhook]]\nname = \"good\"\nurl = \"{}/y\"\n", good.url);
    let began = Instant::now();
    let (outcomes, _) = tell_within(Duration::from_secs(1), &config, Verdict::Broken, &[]);
    assert!(began.elapsed() < Duration::from_secs(20), "it hangs");
    let said = |at: usize| format!("{:?}", outcomes[at].result);
    assert!(said(0).contains("did not end within 1 s"), "{}", said(0));
    assert!(said(1).contains("timeout"), "{}", said(1));
    assert_eq!(outcomes[2].result, Ok(Delivery::Sent));
}

#[test]
fn one_address_that_is_refused_does_not_keep_a_mail_from_the_others() {
    let server = MailServer::start("nobody");
    let config = mail_config(server.port, "\"a@example.org\", \"nobody@example.org\"", "");
    let (outcomes, _) = tell(&config, Verdict::Regressed, &[]);
    let error = outcomes[0].result.as_ref().unwrap_err().to_string();
    assert!(
        error.starts_with("nobody@example.org: ") && error.ends_with("(the others were notified)"),
        "{error}"
    );
    assert!(server.mails.recv().unwrap().commands.iter().any(|line| line.contains("RCPT TO:<a@")));
}

#[test]
fn a_mail_server_that_is_busy_is_tried_again() {
    let server = MailServer::start_busy(2);
    let (outcomes, waits) = tell(&mail_config(server.port, "\"a@example.org\"", ""), Verdict::Regressed, &[]);
    assert_eq!((&outcomes[0].result, waits), (&Ok(Delivery::Sent), vec![2, 4]));
    let server = MailServer::start_busy(9);
    let (outcomes, waits) = tell(&mail_config(server.port, "\"a@example.org\"", ""), Verdict::Regressed, &[]);
    assert!(outcomes[0].result.is_err() && waits.len() == 2, "{outcomes:?}");
}

#[test]
fn only_the_verdicts_asked_for_are_told() {
    let config = "on = [\"improved\"]\n[[slack]]\nname = \"a\"\nurl_env = \"A\"\n[[slack]]\nname = \"b\"\nurl_env = \"B\"\non = [\"inconclusive\"]\n";
    let config = NotifyConfig::parse(&format!("schema_version = 1\n{config}")).unwrap();
    let told = |verdict| {
        let outcomes = rehearsed(&config, verdict, &[]);
        outcomes.into_iter().map(|outcome| outcome.result.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(told(Verdict::Improved), [Delivery::Sent, Delivery::NotWanted]);
    assert_eq!(told(Verdict::Inconclusive), [Delivery::NotWanted, Delivery::Sent]);
    assert_eq!(told(Verdict::Regressed), [Delivery::NotWanted, Delivery::NotWanted]);
}
