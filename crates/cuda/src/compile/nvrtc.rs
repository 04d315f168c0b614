//! NVRTC, loaded on demand. Only a handful of its calls; cudarc's own loader cannot be told where the library is.

use super::Toolkit;
use crate::error::{CudaError, Unavailable};
use holdpoint_model::FailureCause;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;

pub struct Nvrtc {
    /// Such as `13.0`.
    pub version: String,
    include: String,
    create: Symbol<Create>,
    compile: Symbol<Compile>,
    destroy: Symbol<Destroy>,
    log: (Symbol<Size>, Symbol<Get>),
    cubin: (Symbol<Size>, Symbol<Get>),
    // Dropped last: the symbols point into them.
    _libraries: Vec<Library>,
}

pub(super) struct Compiled {
    pub cubin: Vec<u8>,
    pub log: String,
}

impl Nvrtc {
    pub fn load(found: &Toolkit) -> Result<Self, Unavailable> {
        Self::open(found).map_err(|error| {
            let detail = format!("{} cannot be used: {error}", found.library.display());
            Unavailable::new("nvrtc_not_usable", detail)
        })
    }

    fn open(found: &Toolkit) -> Result<Self, libloading::Error> {
        // It looks for its other half by name only, which works once that is loaded.
        let mut libraries: Vec<Library> =
            builtins(&found.library).iter().filter_map(|path| open(path).ok()).collect();
        let library = open(&found.library)?;
        let mut version = [0, 0];
        // SAFETY: the names and types are those of nvrtc.h, unchanged since CUDA 11.1.
        unsafe {
            let ask: Symbol<Version> = library.get(b"nvrtcVersion\0")?;
            let [major, minor] = &mut version;
            ask(major, minor);
            let nvrtc = Self {
                version: format!("{}.{}", version[0], version[1]),
                include: found.include.to_string_lossy().into_owned(),
                create: library.get(b"nvrtcCreateProgram\0")?,
                compile: library.get(b"nvrtcCompileProgram\0")?,
                destroy: library.get(b"nvrtcDestroyProgram\0")?,
                log: (library.get(b"nvrtcGetProgramLogSize\0")?, library.get(b"nvrtcGetProgramLog\0")?),
                cubin: (library.get(b"nvrtcGetCUBINSize\0")?, library.get(b"nvrtcGetCUBIN\0")?),
                _libraries: {
                    libraries.push(library);
                    libraries
                },
            };
            Ok(nvrtc)
        }
    }

    /// Compiles a source to machine code; it may include the headers that come with it.
    pub(super) fn compile(
        &self,
        name: &str,
        source: &str,
        headers: &[(&str, &str)],
        options: &[String],
    ) -> Result<Compiled, CudaError> {
        let failed = |what: String| CudaError::new(FailureCause::CompileFailed, what);
        let text =
            |text: &str| CString::new(text).map_err(|_| failed(format!("{name}: a zero byte in the source")));
        let (file, source) = (text(name)?, text(source)?);
        let names: Vec<CString> = headers.iter().map(|(name, _)| text(name)).collect::<Result<_, _>>()?;
        let headers: Vec<CString> = headers.iter().map(|(_, body)| text(body)).collect::<Result<_, _>>()?;
        let mut options: Vec<CString> =
            options.iter().map(|option| text(option)).collect::<Result<_, _>>()?;
        options.push(text(&format!("-I{}", self.include))?);
        options.push(text(&format!("-I{}/cccl", self.include))?);
        let pointers = |strings: &[CString]| strings.iter().map(|s| s.as_ptr()).collect::<Vec<_>>();
        let (headers, names, given) = (pointers(&headers), pointers(&names), pointers(&options));
        let mut program = std::ptr::null_mut();
        // SAFETY: all strings outlive the calls; the counts are those of the arrays; the program is destroyed once.
        unsafe {
            let created = (self.create)(
                &mut program,
                source.as_ptr(),
                file.as_ptr(),
                c_int::try_from(headers.len()).unwrap_or(0),
                headers.as_ptr(),
                names.as_ptr(),
            );
            if created != 0 {
                return Err(failed(format!("{name}: NVRTC refuses the program (code {created})")));
            }
            let code = (self.compile)(program, c_int::try_from(given.len()).unwrap_or(0), given.as_ptr());
            let log = read(program, &self.log);
            let cubin = if code == 0 { read(program, &self.cubin) } else { Vec::new() };
            (self.destroy)(&mut program);
            let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
            if code != 0 || cubin.is_empty() {
                return Err(failed(format!("{name} does not compile (code {code}): {}", first_error(&log))));
            }
            Ok(Compiled { cubin, log })
        }
    }
}

/// # Safety
/// The program must be alive and the calls those that give the size and the bytes of one thing.
unsafe fn read(program: Program, (size, get): &(Symbol<Size>, Symbol<Get>)) -> Vec<u8> {
    let mut bytes_count = 0;
    if unsafe { size(program, &mut bytes_count) } != 0 {
        return Vec::new();
    }
    let mut bytes = vec![0_u8; bytes_count];
    if unsafe { get(program, bytes.as_mut_ptr().cast()) } != 0 {
        return Vec::new();
    }
    bytes
}

/// The line with the error; the log also reports on kernels that compiled.
pub(super) fn first_error(log: &str) -> &str {
    log.lines().find(|line| line.contains("error")).unwrap_or("no reason given")
}

fn open(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: the vendor's library, whose initialisers only set up itself.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
}

/// NVRTC's second library, beside the first.
fn builtins(library: &Path) -> Vec<std::path::PathBuf> {
    let entries =
        library.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_it = |name: &str| name.starts_with("libnvrtc-builtins.so");
    entries.filter(|entry| is_it(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}
