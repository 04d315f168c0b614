//! What a forge (GitHub, GitLab) is told and believed. Nothing here measures or decides about speed.

pub mod guard;
pub mod workflows;
