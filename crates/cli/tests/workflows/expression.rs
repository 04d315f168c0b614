//! GitHub's expressions, as far as the workflows use them. What they do not use is a panic, not a guess.

use serde_json::Value;

/// Text with `${{ … }}` filled in.
pub fn fill(text: &str, contexts: &Value) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.split_once("}}").expect("an expression ends");
        filled += before;
        filled += &word(&evaluate(expression, contexts));
        rest = after;
    }
    filled + rest
}

/// Whether an `if:` holds. Without a function of status in it, `success()` is meant as well.
pub fn holds(condition: Option<&Value>, is_success: bool, contexts: &Value) -> bool {
    let Some(condition) = condition else { return is_success };
    let condition = condition.as_str().expect("conditions are text");
    (condition.contains("always()") || is_success) && truth(&evaluate(condition, contexts))
}

fn evaluate(text: &str, contexts: &Value) -> Value {
    let mut parser = Parser { rest: text.trim(), contexts };
    let value = parser.either();
    assert_eq!(parser.rest, "", "all of {text:?} is understood");
    value
}

/// How a value stands in a text; what is not there is empty.
pub fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        other => panic!("{other} is no word"),
    }
}

fn truth(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && *value != "" && *value != 0
}

struct Parser<'a> {
    rest: &'a str,
    contexts: &'a Value,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.strip_prefix(token);
        self.rest = found.unwrap_or(rest).trim_start();
        found.is_some()
    }

    fn either(&mut self) -> Value {
        let mut left = self.both();
        while self.take("||") {
            let right = self.both();
            left = if truth(&left) { left } else { right };
        }
        left
    }

    fn both(&mut self) -> Value {
        let mut left = self.compared();
        while self.take("&&") {
            let right = self.compared();
            left = if truth(&left) { right } else { left };
        }
        left
    }

    fn compared(&mut self) -> Value {
        let left = self.single();
        // GitHub compares texts without regard to case, and takes what is not there for empty.
        let same = |left: &Value, right: &Value| word(left).eq_ignore_ascii_case(&word(right));
        if self.take("==") {
            return same(&left, &self.single()).into();
        }
        if self.take("!=") {
            return (!same(&left, &self.single())).into();
        }
        left
    }

    fn single(&mut self) -> Value {
        if self.take("'") {
            let (text, rest) = self.rest.split_once('\'').expect("a text ends");
            self.rest = rest.trim_start();
            return text.into();
        }
        if self.take("(") {
            let value = self.either();
            assert!(self.take(")"));
            return value;
        }
        if self.take("format('refs/heads/{0}',") {
            let name = word(&self.either());
            assert!(self.take(")"));
            return format!("refs/heads/{name}").into();
        }
        if self.take("always()") {
            return true.into();
        }
        if self.take("startsWith(") {
            let text = word(&self.either());
            assert!(self.take(","));
            let start = word(&self.either());
            assert!(self.take(")"));
            return text.starts_with(&start).into();
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        assert!(!name.is_empty(), "not understood: {:?}", self.rest);
        self.rest = rest.trim_start();
        let mut parts = name.split('.');
        let context = parts.next().and_then(|first| self.contexts.get(first));
        let context = context.unwrap_or_else(|| panic!("{name}: no such context here"));
        parts.try_fold(context, |value, part| value.get(part)).cloned().unwrap_or_default()
    }
}
