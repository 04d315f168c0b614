//! Sizes as numbers or small expressions of other sizes: `"ceil_div(steps, 64) * heads"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number, or an expression: names, `+ - * / %`, comparisons that are 1 or 0, `ceil_div(a, b)`, `min(a, b)`, `max(a, b)`. Whole
/// numbers throughout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    Number(u64),
    Text(String),
}

impl Default for Size {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// Characters of an expression, at most; it is read by a function that calls itself.
const CHARS_MAX: usize = 200;
const COMPARISONS: &[&str] = &["==", "!=", "<=", ">=", "<", ">"];
const FUNCTIONS: &[&str] = &["ceil_div", "min", "max"];

impl Size {
    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::Number(0)
    }

    /// Whether it can be read, whatever its names mean.
    pub fn check(&self) -> Result<(), String> {
        self.read(None).map(drop)
    }

    /// Its value, given the sizes that its names stand for.
    pub fn value(&self, names: &[(&str, u64)]) -> Result<u64, String> {
        self.read(Some(names))
    }

    fn read(&self, names: Option<&[(&str, u64)]>) -> Result<u64, String> {
        let text = match self {
            Self::Number(number) => return Ok(*number),
            Self::Text(text) => text,
        };
        let told = |problem: String| format!("{text:?}: {problem}");
        if text.chars().count() > CHARS_MAX {
            return Err(format!("an expression of more than {CHARS_MAX} characters"));
        }
        let mut reader = Reader { rest: text.trim_start(), names };
        let value = reader.comparison().map_err(told)?;
        if !reader.rest.is_empty() {
            return Err(told(format!("{:?} is not understood", reader.rest)));
        }
        Ok(value)
    }
}

struct Reader<'a> {
    rest: &'a str,
    /// The values of names; absent when only the form is checked, and every name and quotient is 1.
    names: Option<&'a [(&'a str, u64)]>,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn wants(&mut self, token: &str) -> Result<(), String> {
        if self.takes(token) { Ok(()) } else { Err(format!("{token:?} is missing before {:?}", self.rest)) }
    }

    fn while_is(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        taken
    }

    fn comparison(&mut self) -> Result<u64, String> {
        let left = self.sum()?;
        let Some(sign) = COMPARISONS.iter().find(|sign| self.takes(sign)) else { return Ok(left) };
        let right = self.sum()?;
        Ok(u64::from(match *sign {
            "==" => left == right,
            "!=" => left != right,
            "<=" => left <= right,
            ">=" => left >= right,
            "<" => left < right,
            _ => left > right,
        }))
    }

    fn sum(&mut self) -> Result<u64, String> {
        let mut value = self.product()?;
        loop {
            if self.takes("+") {
                value = bounded(value.checked_add(self.product()?))?;
            } else if self.takes("-") {
                let right = self.product()?;
                value = match value.checked_sub(right) {
                    Some(value) => value,
                    None if self.names.is_none() => 1,
                    None => return Err(format!("{value} - {right} is below zero")),
                };
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<u64, String> {
        let mut value = self.atom()?;
        loop {
            if self.takes("*") {
                value = bounded(value.checked_mul(self.atom()?))?;
            } else if self.takes("/") {
                let right = self.atom()?;
                value = self.divided(value.checked_div(right))?;
            } else if self.takes("%") {
                let right = self.atom()?;
                value = self.divided(value.checked_rem(right))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn atom(&mut self) -> Result<u64, String> {
        if self.takes("(") {
            let value = self.comparison()?;
            self.wants(")")?;
            return Ok(value);
        }
        let digits = self.while_is(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            return digits.parse().map_err(|_| format!("{digits} is too large"));
        }
        let name = self.while_is(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(match self.rest {
                "" => "it ends where a number or a name is wanted".to_owned(),
                rest => format!("a number or a name is wanted before {rest:?}"),
            });
        }
        if !self.rest.starts_with('(') {
            let Some(names) = self.names else { return Ok(1) };
            let found = names.iter().find(|(known, _)| *known == name);
            return found.map(|(_, value)| *value).ok_or_else(|| {
                let known: Vec<&str> = names.iter().map(|(known, _)| *known).collect();
                format!("no size is called {name:?}; there are {}", known.join(", "))
            });
        }
        if !FUNCTIONS.contains(&name) {
            return Err(format!("no function is called {name:?}; there are {}", FUNCTIONS.join(", ")));
        }
        self.wants("(")?;
        let left = self.comparison()?;
        self.wants(",")?;
        let right = self.comparison()?;
        self.wants(")")?;
        match name {
            "ceil_div" => self.divided((right > 0).then(|| left.div_ceil(right.max(1)))),
            "min" => Ok(left.min(right)),
            _ => Ok(left.max(right)),
        }
    }

    fn divided(&self, value: Option<u64>) -> Result<u64, String> {
        match (value, self.names) {
            (Some(value), _) => Ok(value),
            (None, None) => Ok(1),
            (None, Some(_)) => Err("it divides by zero".to_owned()),
        }
    }
}

fn bounded(value: Option<u64>) -> Result<u64, String> {
    value.ok_or_else(|| "it is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[(&str, u64)] = &[("steps", 100), ("heads", 4), ("none", 0)];

    #[test]
    fn expressions_have_the_values_of_arithmetic() {
        for (text, expected) in [
            ("7", 7),
            (" ceil_div(steps, 64) * heads ", 8),
            ("1 + 2 * 3", 7),
            ("(1+2)*3", 9),
            ("steps - 1 - 1", 98),
            ("steps / 3 % 5", 3),
            ("steps % 64 == 0", 0),
            ("steps % 50 == 0", 1),
            ("heads <= 4", 1),
            ("heads < 4", 0),
            ("min(heads, max(steps, 3))", 4),
            ("(heads == 4) * 5", 5),
        ] {
            assert_eq!(Size::Text(text.to_owned()).value(NAMES), Ok(expected), "{text}");
            assert_eq!(Size::Text(text.to_owned()).check(), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, expected) in [
            ("", "it ends where"),
            ("steps steps", "\"steps\" is not understood"),
            ("widths", "no size is called \"widths\"; there are steps, heads, none"),
            ("floor(steps, 2)", "no function is called \"floor\""),
            ("steps / none", "divides by zero"),
            ("ceil_div(1, none)", "divides by zero"),
            ("1 - 2", "below zero"),
            ("18446744073709551615 + 1", "too large"),
            ("99999999999999999999", "too large"),
            ("min(1)", "\",\" is missing"),
            ("(1", "\")\" is missing"),
            ("1 = 1", "\"= 1\" is not understood"),
            ("*", "wanted before \"*\""),
        ] {
            let error = Size::Text(text.to_owned()).value(NAMES).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error:?} should contain {expected:?}");
        }
        assert!(Size::Text("(".repeat(100_000)).check().is_err());
        assert!(Size::Text("steps / (none - 3)".to_owned()).check().is_ok(), "only the form is looked at");
    }
}
