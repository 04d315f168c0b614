//! A mail server that takes everything and keeps it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// What one connection said.
#[derive(Debug, Default)]
pub struct Mail {
    pub commands: Vec<String>,
    pub text: String,
}

pub struct MailServer {
    pub port: u16,
    pub mails: Receiver<Mail>,
}

impl MailServer {
    /// Refuses mail to addresses that contain `refused`.
    pub fn start(refused: &'static str) -> Self {
        Self::start_with(refused, 0, "")
    }

    /// Asks to come back later so many times.
    pub fn start_busy(busy_count: usize) -> Self {
        Self::start_with("", busy_count, "")
    }

    /// Refuses a login with these words: `{line}` is what was sent, `{decoded}` the login in it.
    pub fn start_echo(echo: &'static str) -> Self {
        Self::start_with("", 0, echo)
    }

    fn start_with(refused: &'static str, busy_count: usize, echo: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, mails) = channel();
        thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                serve(stream.unwrap(), refused, count < busy_count, echo, &sender);
            }
        });
        Self { port, mails }
    }
}

fn serve(mut stream: TcpStream, refused: &str, is_busy: bool, echo: &str, sender: &Sender<Mail>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut mail = Mail::default();
    let mut say = |text: &str| stream.write_all(format!("{text}\r\n").as_bytes()).is_ok();
    say("220 here");
    while let Some(Ok(line)) = lines.next() {
        mail.commands.push(line.clone());
        match line.split(' ').next().unwrap_or_default() {
            "EHLO" => say("250-here\r\n250-AUTH PLAIN\r\n250 8BITMIME"),
            "AUTH" if !echo.is_empty() => {
                let login = STANDARD.decode(line.rsplit(' ').next().unwrap()).unwrap();
                let login = String::from_utf8(login).unwrap().replace('\0', " ");
                let said = echo.replace("{line}", &line).replace("{decoded}", &login);
                say(&format!("535 5.7.8 refused: {said}"))
            }
            "AUTH" => say("235 welcome"),
            "RCPT" if is_busy => say("450 come back later"),
            "RCPT" if !refused.is_empty() && line.contains(refused) => say("550 no such person"),
            "DATA" => {
                say("354 go on");
                for line in lines.by_ref().map_while(Result::ok).take_while(|line| line != ".") {
                    mail.text.push_str(&line);
                    mail.text.push('\n');
                }
                let kept = sender.send(std::mem::take(&mut mail)).is_ok();
                say("250 taken") && kept
            }
            "QUIT" => {
                say("221 bye");
                return;
            }
            _ => say("250 fine"),
        };
    }
}

/// A server that begins like this, then sends a byte every twentieth of a second for as long as anybody listens; its port.
pub fn drip(first: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut is_open = stream.write_all(first).is_ok();
                while is_open {
                    is_open = stream.write_all(b"x").is_ok();
                    thread::sleep(Duration::from_millis(50));
                }
            });
        }
    });
    port
}
