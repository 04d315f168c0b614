//! Commands as functions: requests in, documents and files out, without a process of holdpoint's own.

#![allow(clippy::unwrap_used)]

mod compare;
mod paths;
mod sides;
mod support;
