//! Removes secrets from servers' answers: a server may repeat them, plain or encoded, and logs are public.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use holdpoint_model::limits::clean_text;

const HIDDEN: &str = "…";
/// Characters of a part of an address that may be a secret; shorter ones are words such as `hook`.
const URL_PART_CHARS_MIN: usize = 6;
/// Bytes of a secret from which on it is looked for inside of other base64: fewer leave too few digits.
const INNER_BYTES_MIN: usize = 4;

/// Every form in which the secrets could come back, in lower case.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    forms: Vec<String>,
}

impl Secrets {
    /// A password, a user, a token, a key.
    pub(crate) fn add(&mut self, secret: &str) {
        let bytes = secret.as_bytes();
        self.keep(secret);
        self.keep(&encode_percent(secret));
        self.keep(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        self.keep(serde_json::Value::from(secret).to_string().trim_matches('"'));
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            self.keep(&engine.encode(bytes));
            if bytes.len() >= INNER_BYTES_MIN {
                (0..3).for_each(|before| self.keep(&inner_base64(engine, bytes, before)));
            }
        }
    }

    /// A user and a password, which also travel together.
    pub(crate) fn add_login(&mut self, user: &str, password: &str) {
        self.add(user);
        self.add(password);
        self.add(&format!("\0{user}\0{password}"));
        self.add(&format!("{user}:{password}"));
    }

    /// An address that may contain a secret.
    pub(crate) fn add_url(&mut self, url: &str) {
        self.add(url);
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        if let Some(at) = rest.find(['/', '?']).filter(|at| rest.len() > at + 1) {
            self.keep(&rest[at..]);
        }
        let parts = url.split(['/', '?', '&', '=', '@', '#']);
        parts.filter(|part| part.len() >= URL_PART_CHARS_MIN).for_each(|part| self.add(part));
    }

    fn keep(&mut self, form: &str) {
        let form = form.to_ascii_lowercase();
        if !form.is_empty() && !self.forms.contains(&form) {
            self.forms.push(form);
        }
    }

    /// The text on one line, without any secret. Cut it afterwards, never before: a piece of a secret would not be found.
    pub(crate) fn clean(&self, text: &str) -> String {
        // Once more when what cannot be printed is gone: it could have stood in the middle of a secret.
        self.hide(&clean_text(&self.hide(text)))
    }

    /// The text without any secret. Matches are found first and hidden together: one may reach into another.
    pub(crate) fn hide(&self, text: &str) -> String {
        let lower = text.to_ascii_lowercase();
        let mut is_secret = vec![false; text.len()];
        for form in &self.forms {
            let mut from = 0;
            while let Some(at) = lower[from..].find(form.as_str()).map(|at| at + from) {
                is_secret[at..at + form.len()].fill(true);
                from = at + lower[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        let mut out = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            match is_secret[at] {
                false => out.push(c),
                true if at == 0 || !is_secret[at - 1] => out.push_str(HIDDEN),
                true => {}
            }
        }
        out
    }
}

/// The digits of a secret inside longer base64, behind so many bytes (of three): those that depend on it alone.
fn inner_base64(engine: &impl Engine, secret: &[u8], before: usize) -> String {
    let padded = [vec![0; before], secret.to_vec()].concat();
    let digits = engine.encode(&padded);
    let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    digits[from..to].to_owned()
}

pub(crate) fn encode_percent(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    const PASSWORD: &str = "hunter2/is+Größe";

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add_login("perf@example.org", PASSWORD);
        secrets.add_url("https://hooks.example.org/services/T0AB/s3cret-part?k=v");
        secrets
    }

    #[test]
    fn a_secret_is_hidden_in_every_form_that_a_server_could_send_it_back_in() {
        let plain = format!("\0perf@example.org\0{PASSWORD}");
        for secret in [
            PASSWORD.to_owned(),
            PASSWORD.to_ascii_uppercase(),
            STANDARD.encode(PASSWORD),
            URL_SAFE_NO_PAD.encode(PASSWORD),
            STANDARD.encode(&plain),
            STANDARD.encode(format!("x{PASSWORD}y")),
            STANDARD.encode(format!("xy{PASSWORD}")),
            encode_percent(PASSWORD),
            "perf@example.org".to_owned(),
            STANDARD.encode("perf@example.org"),
            "/services/T0AB/s3cret-part?k=v".to_owned(),
            "hunter\u{7}2/is+Größe".to_owned(),
        ] {
            let cleaned = secrets().clean(&format!("535 no: {secret} (refused)"));
            assert!(cleaned.starts_with("535 no: ") && cleaned.ends_with(" (refused)"), "{cleaned}");
            let left = cleaned.trim_start_matches("535 no: ").trim_end_matches(" (refused)");
            assert!(left.chars().count() <= 8, "{secret}: {cleaned}");
        }
        assert_eq!(secrets().clean("535 no such user"), "535 no such user");
    }

    #[test]
    fn secrets_that_reach_into_each_other_leave_nothing_behind() {
        let mut secrets = Secrets::default();
        secrets.add("abcd");
        secrets.add("cdef");
        assert_eq!(secrets.hide("<abcdef>"), "<…>");
        assert_eq!(secrets.hide("größe abcd ü"), "größe … ü");
        assert_eq!(Secrets::default().hide("abcd"), "abcd");
    }
}
