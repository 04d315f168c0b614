//! A shared library of the user's whose function makes the launches: kernels that a build of their own has compiled.

use crate::device::Device;
use crate::error::CudaError;
use holdpoint_model::FailureCause;
use sha2::{Digest, Sha256};
use std::ffi::{CString, c_char, c_int, c_longlong, c_void};
use std::path::Path;
use std::rc::Rc;

/// Bytes of a library, at most.
const BYTES_MAX: u64 = 1 << 30;

/// `int entry(void *stream, void *const *tensors, const long long *sizes, const char *dtype)`.
type Entry = unsafe extern "C" fn(*mut c_void, *const u64, *const c_longlong, *const c_char) -> c_int;

/// A library that stays loaded for as long as calls of its functions are there.
pub struct Library {
    library: libloading::Library,
    /// Of its file.
    pub sha256: String,
}

impl Library {
    pub fn open(path: &Path) -> Result<Rc<Self>, CudaError> {
        let failed = |error: &dyn std::fmt::Display| {
            CudaError::new(FailureCause::NotStarted, format!("{}: {error}", path.display()))
        };
        // A name without a slash would be looked up in the system's folders.
        let path_here = path.canonicalize().map_err(|error| failed(&error))?;
        let len = std::fs::metadata(&path_here).map_err(|error| failed(&error))?.len();
        if len > BYTES_MAX {
            return Err(failed(&"a library of more than 1 GiB"));
        }
        let bytes = std::fs::read(&path_here).map_err(|error| failed(&error))?;
        let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        // SAFETY: the suite names the library, and its initialisers run as any program would that the suite names.
        let library = unsafe { libloading::Library::new(&path_here) }.map_err(|error| failed(&error))?;
        Ok(Rc::new(Self { library, sha256 }))
    }

    /// A call of one of its functions on these tensors, sizes and element type.
    pub fn call(
        self: &Rc<Self>,
        entry: &str,
        tensors: Vec<u64>,
        sizes: &[u64],
        dtype: &str,
    ) -> Result<LibraryCall, CudaError> {
        let failed = |error: &dyn std::fmt::Display| {
            CudaError::new(FailureCause::NotStarted, format!("{entry}: {error}"))
        };
        // SAFETY: the type is the one that the documentation prescribes; a symbol carries none that could be compared.
        let function =
            unsafe { self.library.get::<Entry>(entry.as_bytes()) }.map_err(|error| failed(&error))?;
        let function = *function;
        let sizes = sizes.iter().map(|size| c_longlong::try_from(*size).unwrap_or(c_longlong::MAX)).collect();
        let dtype = CString::new(dtype).map_err(|error| failed(&error))?;
        Ok(LibraryCall { library: self.clone(), entry: entry.to_owned(), function, tensors, sizes, dtype })
    }
}

pub struct LibraryCall {
    /// Keeps the function's code loaded.
    pub library: Rc<Library>,
    pub entry: String,
    function: Entry,
    tensors: Vec<u64>,
    sizes: Vec<c_longlong>,
    dtype: CString,
}

impl LibraryCall {
    pub fn enqueue(&self, device: &Device) -> Result<(), CudaError> {
        let code = self.run(device.stream.cu_stream().cast());
        if code == 0 {
            return Ok(());
        }
        Err(CudaError::new(
            FailureCause::WorkerError,
            format!("{} returned {code}; 0 is success", self.entry),
        ))
    }

    fn run(&self, stream: *mut c_void) -> c_int {
        // SAFETY: the library is loaded, all pointers outlive the call, and the tensors are held by the program that holds this call.
        unsafe { (self.function)(stream, self.tensors.as_ptr(), self.sizes.as_ptr(), self.dtype.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#include <string.h>\nint scaled(void *stream, void *const *tensors, const long long *sizes, const char *dtype) {\n\
        if (stream || strcmp(dtype, \"f32\")) return 3;\nconst float *in = tensors[0]; float *out = tensors[1];\n\
        for (long long i = 0; i < sizes[0]; i++) out[i] = 2 * in[i];\nreturn 0; }\n";

    #[test]
    fn a_function_of_a_library_gets_tensors_sizes_and_element_type() {
        let dir = tempfile::tempdir().unwrap();
        let (source, path) = (dir.path().join("scaled.c"), dir.path().join("libscaled.so"));
        std::fs::write(&source, SOURCE).unwrap();
        let built = holdpoint_process::command("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&path)
            .arg(&source)
            .status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no C compiler");
            return;
        }
        let library = Library::open(&path).unwrap();
        assert_eq!(library.sha256.len(), 64);
        let (input, mut output) = ([1.0_f32, 2.5], [0.0_f32; 2]);
        let tensors = vec![input.as_ptr() as u64, output.as_mut_ptr() as u64];
        let call = |entry: &str, dtype: &str| library.call(entry, tensors.clone(), &[2], dtype);
        assert_eq!(call("scaled", "f32").unwrap().run(std::ptr::null_mut()), 0);
        assert_eq!(output, [2.0, 5.0]);
        assert_eq!(call("scaled", "f16").unwrap().run(std::ptr::null_mut()), 3);
        assert!(call("other", "f32").err().unwrap().detail.contains("other"));
        let missing = Library::open(&dir.path().join("none.so")).err().unwrap();
        assert!(missing.detail.contains("none.so"), "{missing}");
        // Not the file of a library that is loaded.
        let other = dir.path().join("other.so");
        std::fs::write(&other, "no library").unwrap();
        assert!(Library::open(&other).is_err());
    }
}
