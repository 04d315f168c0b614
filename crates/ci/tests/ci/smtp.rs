//! A mail server that takes everything and keeps it.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

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
        Self::start_with(refused, 0)
    }

    /// Asks to come back later so many times.
    pub fn start_busy(busy_count: usize) -> Self {
        Self::start_with("", busy_count)
    }

    fn start_with(refused: &'static str, busy_count: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, mails) = channel();
        thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                serve(stream.unwrap(), refused, count < busy_count, &sender);
            }
        });
        Self { port, mails }
    }
}

fn serve(mut stream: TcpStream, refused: &str, is_busy: bool, sender: &Sender<Mail>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut mail = Mail::default();
    let mut say = |text: &str| stream.write_all(format!("{text}\r\n").as_bytes()).is_ok();
    say("220 here");
    while let Some(Ok(line)) = lines.next() {
        mail.commands.push(line.clone());
        match line.split(' ').next().unwrap_or_default() {
            "EHLO" => say("250-here\r\n250-AUTH PLAIN\r\n250 8BITMIME"),
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
