//! Reads parity vectors and keeps count of what was read, so that nothing in the file goes unchecked.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use holdpoint_ops::Tolerance;
use holdpoint_ops::compare::Comparison;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

pub struct Tensor {
    pub shape: Vec<usize>,
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl Tensor {
    fn elements<const N: usize, T>(&self, read: fn([u8; N]) -> T) -> Vec<T> {
        self.bytes.as_chunks::<N>().0.iter().map(|&bytes| read(bytes)).collect()
    }

    pub fn floats(&self) -> Vec<f32> {
        match self.dtype {
            Dtype::F32 => self.elements(f32::from_le_bytes),
            Dtype::F16 => self.elements(|bytes| half::f16::from_le_bytes(bytes).to_f32()),
            Dtype::BF16 => self.elements(|bytes| half::bf16::from_le_bytes(bytes).to_f32()),
            other => panic!("expected floats, found {other:?}"),
        }
    }

    pub fn ints(&self) -> Vec<i64> {
        match self.dtype {
            Dtype::I64 => self.elements(i64::from_le_bytes),
            Dtype::I32 => self.elements(|bytes| i64::from(i32::from_le_bytes(bytes))),
            Dtype::I8 => self.elements(|bytes| i64::from(i8::from_le_bytes(bytes))),
            other => panic!("expected whole numbers, found {other:?}"),
        }
    }

    pub fn ids(&self) -> Vec<u32> {
        self.ints().into_iter().map(|id| u32::try_from(id).unwrap()).collect()
    }

    pub fn origins(&self) -> Vec<[u32; 2]> {
        self.ids().as_chunks::<2>().0.to_vec()
    }
}

pub struct Vectors {
    tensors: BTreeMap<String, Tensor>,
    cases: BTreeMap<String, Value>,
    read: RefCell<BTreeSet<String>>,
    failures: RefCell<Vec<String>>,
    checks: RefCell<usize>,
}

impl Vectors {
    /// The file named by HOLDPOINT_PARITY_VECTORS, else the copy beside the tests.
    pub fn load() -> Self {
        let copy = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/apex-x-parity.safetensors");
        let path = std::env::var_os("HOLDPOINT_PARITY_VECTORS").map_or_else(copy, PathBuf::from);
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self::parse(&bytes)
    }

    pub fn parse(bytes: &[u8]) -> Self {
        let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
        let metadata = header.metadata().clone().expect("the file has metadata");
        let cases: BTreeMap<String, Value> = serde_json::from_str(&metadata["cases"]).unwrap();
        let tensors = SafeTensors::deserialize(bytes).unwrap();
        let tensors = tensors.iter().map(|(name, view)| {
            let (shape, dtype, bytes) = (view.shape().to_vec(), view.dtype(), view.data().to_vec());
            (name.to_owned(), Tensor { shape, dtype, bytes })
        });
        Self {
            tensors: tensors.collect(),
            cases,
            read: RefCell::default(),
            failures: RefCell::default(),
            checks: RefCell::default(),
        }
    }

    /// The same file with fewer tensors or with new ones.
    pub fn edited(mut self, keep: impl Fn(&str) -> bool, add: &[&str]) -> Self {
        self.tensors.retain(|name, _| keep(name));
        for name in add {
            let tensor = Tensor { shape: vec![1], dtype: Dtype::F32, bytes: vec![0; 4] };
            self.tensors.insert((*name).to_owned(), tensor);
        }
        self
    }

    /// The same file with one f32 made a NaN.
    pub fn with_changed_answer(mut self, name: &str) -> Self {
        let tensor = self.tensors.get_mut(name).expect("a tensor to change");
        tensor.bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        self
    }

    pub fn get(&self, name: &str) -> &Tensor {
        self.read.borrow_mut().insert(name.to_owned());
        self.tensors.get(name).unwrap_or_else(|| panic!("the file has no tensor {name:?}"))
    }

    pub fn floats(&self, name: &str) -> Vec<f32> {
        self.get(name).floats()
    }

    /// A case's parameters; absent ones are an error too.
    pub fn case(&self, name: &str) -> &Value {
        self.read.borrow_mut().insert(format!("case {name}"));
        self.cases.get(name).unwrap_or_else(|| panic!("the file's metadata has no case {name:?}"))
    }

    pub fn number(&self, case: &str, key: &str) -> f64 {
        self.case(case)[key].as_f64().unwrap_or_else(|| panic!("case {case:?} has no number {key:?}"))
    }

    /// What follows `prefix` up to the next dot, over all tensors.
    pub fn children(&self, prefix: &str) -> BTreeSet<String> {
        let inside = self.tensors.keys().filter_map(|name| name.strip_prefix(prefix));
        inside.map(|rest| rest.split('.').next().unwrap_or(rest).to_owned()).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub fn floats_match(&self, what: &str, name: &str, got: &[f32], tolerance: Tolerance) {
        let tensor = self.get(name);
        let check = Comparison::new(tolerance).floats(name, &tensor.shape, got, &tensor.floats()).finish();
        *self.checks.borrow_mut() += 1;
        if !check.passed {
            self.fail(format!("{what}: {check:?}"));
        }
    }

    pub fn ints_match(&self, what: &str, name: &str, got: impl IntoIterator<Item = i64>) {
        self.same(&format!("{what}: {name}"), &got.into_iter().collect::<Vec<_>>(), &self.get(name).ints());
    }

    pub fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, got: &T, want: &T) {
        *self.checks.borrow_mut() += 1;
        if got != want {
            self.fail(format!("{what}: got {got:?}, want {want:?}"));
        }
    }

    fn fail(&self, problem: String) {
        self.failures.borrow_mut().push(problem);
    }

    /// Mismatches, then tensors and cases that no check ever looked at.
    pub fn problems(&self) -> Vec<String> {
        let read = self.read.borrow();
        let mut problems = self.failures.borrow().clone();
        let unread = self.tensors.keys().filter(|name| !read.contains(*name));
        problems.extend(unread.map(|name| format!("tensor {name:?} is not covered by any check")));
        let unread = self.cases.keys().filter(|name| !read.contains(&format!("case {name}")));
        problems.extend(unread.map(|name| format!("case {name:?} is not covered by any check")));
        problems
    }

    pub fn checks(&self) -> usize {
        *self.checks.borrow()
    }
}
