//! Hash of the machine code in a compiled file: equal code has an equal hash, whatever else the compiler wrote beside it.

use sha2::{Digest, Sha256};

/// Sections that a device executes or reads as constants.
const SECTIONS: &[&str] = &[".text.", ".nv.constant"];

/// Hash of the machine code in a cubin, by section; of the whole file where it is not laid out as one.
pub(crate) fn sass_sha256(cubin: &[u8]) -> String {
    let mut hash = Sha256::new();
    match sections(cubin) {
        Some(mut sections) if !sections.is_empty() => {
            sections.sort_unstable();
            for (name, bytes) in sections {
                hash.update((name.len() as u64).to_le_bytes());
                hash.update(name);
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
        }
        _ => hash.update(cubin),
    }
    super::hex(&hash.finalize())
}

/// Size of the instructions in a cubin; absent where it is not laid out as one.
pub(crate) fn sass_bytes(cubin: &[u8]) -> Option<u64> {
    let sections = sections(cubin)?;
    let text = sections.iter().filter(|(name, _)| name.starts_with(SECTIONS[0].as_bytes()));
    Some(text.map(|(_, bytes)| bytes.len() as u64).sum())
}

/// Names and contents of the sections of interest of a 64-bit ELF file.
fn sections(file: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let word = |at: usize, len: usize| -> Option<usize> {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(file.get(at..at.checked_add(len)?)?);
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    if file.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let (table, size, count, names) = (word(0x28, 8)?, word(0x3a, 2)?, word(0x3c, 2)?, word(0x3e, 2)?);
    let header = |index: usize| table.checked_add(index.checked_mul(size)?);
    let contents = |index: usize| {
        let at = header(index)?;
        let (start, len) = (word(at.checked_add(0x18)?, 8)?, word(at.checked_add(0x20)?, 8)?);
        file.get(start..start.checked_add(len)?)
    };
    let all_names = contents(names)?;
    let mut found = Vec::new();
    for index in 0..count {
        let name = all_names.get(word(header(index)?, 4)?..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        if SECTIONS.iter().any(|prefix| name.starts_with(prefix.as_bytes())) {
            found.push((name, contents(index)?));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with these sections, in this order.
    fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut file = vec![0_u8; 0x40];
        file[..5].copy_from_slice(b"\x7fELF\x02");
        let (mut names, mut headers) = (vec![0_u8], Vec::new());
        let mut add = |file: &mut Vec<u8>, name: usize, bytes: &[u8]| {
            let mut header = [0_u8; 0x40];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[0x18..0x20].copy_from_slice(&(file.len() as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            file.extend_from_slice(bytes);
            headers.extend_from_slice(&header);
        };
        for (name, bytes) in sections {
            let at = names.len();
            names.extend_from_slice(name.as_bytes());
            names.push(0);
            add(&mut file, at, bytes);
        }
        add(&mut file, 0, &names);
        let table = file.len() as u64;
        file.extend_from_slice(&headers);
        file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        file[0x3a..0x3c].copy_from_slice(&0x40_u16.to_le_bytes());
        file[0x3c..0x3e].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
        file[0x3e..0x40].copy_from_slice(&(sections.len() as u16).to_le_bytes());
        file
    }

    #[test]
    fn only_code_and_constants_count() {
        let one = elf(&[(".text.f", b"code"), (".nv.info", b"made by 13.0"), (".nv.constant0.f", b"c")]);
        let other =
            elf(&[(".nv.constant0.f", b"c"), (".nv.info", b"made by 13.1 later"), (".text.f", b"code")]);
        assert_eq!(sass_sha256(&one), sass_sha256(&other));
        for changed in [
            elf(&[(".text.f", b"coda"), (".nv.constant0.f", b"c")]),
            elf(&[(".text.g", b"code"), (".nv.constant0.f", b"c")]),
            elf(&[(".text.f", b"code"), (".nv.constant0.f", b"d")]),
        ] {
            assert_ne!(sass_sha256(&one), sass_sha256(&changed));
        }
    }

    #[test]
    fn other_files_are_hashed_whole_and_never_panic() {
        assert_ne!(sass_sha256(b"abc"), sass_sha256(b"abd"));
        let whole = elf(&[(".text.f", b"code")]);
        for len in 0..whole.len() {
            assert_eq!(sass_sha256(&whole[..len]).len(), 64);
        }
    }
}
