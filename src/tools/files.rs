//! Reading, writing and editing text files. A write that fails leaves what was there.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::paths::Workspace;
use super::{EditFileArgs, Output, ReadFileArgs, WriteFileArgs};

/// Files larger than this are not read whole.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Lines that one read gives, unless asked for fewer.
const LINES_MAX: usize = 2_000;
/// Characters that one read gives.
const READ_CHARS_MAX: usize = 50_000;
/// Characters of one line.
const LINE_CHARS_MAX: usize = 2_000;
/// What a new file may be used for, before the process' own mask.
const NEW_FILE_MODE: u32 = 0o644;

const BOM: &str = "\u{feff}";

pub(super) fn read(workspace: &Workspace, call: &ReadFileArgs) -> Output {
    let text = match workspace.readable(&call.path).and_then(|path| text_of(&path, &call.path)) {
        Ok(text) => text,
        Err(why) => return Output::error(why),
    };
    if text.is_empty() {
        return Output::done("(the file is empty)");
    }
    let from = usize::try_from(call.offset.unwrap_or(1).max(1)).unwrap_or(usize::MAX) - 1;
    let limit = call.limit.map_or(LINES_MAX, |limit| usize::try_from(limit).unwrap_or(LINES_MAX).clamp(1, LINES_MAX));
    let count = text.lines().count();
    if from >= count {
        return Output::error(format!("{} has {count} lines; offset {} is past its end", call.path, from + 1));
    }
    let mut shown = String::new();
    let mut next = from;
    for line in text.lines().skip(from).take(limit) {
        if shown.len() > READ_CHARS_MAX {
            break;
        }
        next += 1;
        let cut = line.char_indices().nth(LINE_CHARS_MAX).map(|(at, _)| at);
        let (line, mark) = cut.map_or((line, ""), |at| (&line[..at], " … (line cut)"));
        shown.push_str(&format!("{next:>6}\t{line}{mark}\n"));
    }
    if next < count {
        shown.push_str(&format!("… ({} more lines; go on with offset {})\n", count - next, next + 1));
    }
    Output::done(shown)
}

pub(super) fn write(workspace: &Workspace, call: &WriteFileArgs) -> Output {
    let path = match workspace.writable(&call.path) {
        Ok(path) => path,
        Err(why) => return Output::error(why),
    };
    let existed = path.exists();
    if let Err(why) = replace(&path, call.content.as_bytes()) {
        return Output::error(format!("{} was not written: {why}", call.path));
    }
    let lines = call.content.lines().count();
    Output::done(format!("{} {} ({lines} lines)", if existed { "replaced" } else { "created" }, call.path))
}

pub(super) fn edit(workspace: &Workspace, call: &EditFileArgs) -> Output {
    if call.old_text.is_empty() {
        return Output::error(
            "old_text is empty; give the text that is to be replaced, or use write_file for a new file",
        );
    }
    if call.old_text == call.new_text {
        return Output::error("old_text and new_text are the same; nothing would change");
    }
    let found = workspace.writable(&call.path).and_then(|path| text_of(&path, &call.path).map(|text| (path, text)));
    let (path, text) = match found {
        Ok(found) => found,
        Err(why) => return Output::error(why),
    };
    let (bom, body) = text.strip_prefix(BOM).map_or(("", text.as_str()), |body| (BOM, body));
    // The model writes LF; a file that keeps CRLF is matched and written as such.
    let crlf = body.contains("\r\n") && !call.old_text.contains('\r');
    let fitted = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
    let (old, new) = (fitted(&call.old_text), fitted(&call.new_text));
    let places: Vec<usize> = body.match_indices(&old).map(|(at, _)| body[..at].matches('\n').count() + 1).collect();
    let listed = places.iter().take(10).map(usize::to_string).collect::<Vec<_>>().join(", ");
    match (places.len(), call.replace_all.unwrap_or(false)) {
        (0, _) => {
            return Output::error(format!("old_text was not found in {}{}", call.path, nearest(body, &call.old_text)));
        }
        (count @ 2.., false) => {
            return Output::error(format!(
                "old_text stands {count} times in {} (lines {listed}); add surrounding lines until it is unique, or set replace_all",
                call.path
            ));
        }
        (1.., _) => {}
    }
    let changed = format!("{bom}{}", body.replace(&old, &new));
    match replace(&path, changed.as_bytes()) {
        Ok(()) => Output::done(format!("edited {} (line {listed})", call.path)),
        Err(why) => Output::error(format!("{} was not changed: {why}", call.path)),
    }
}

/// The text of a regular file; anything else is refused in words, and nothing is waited for.
fn text_of(path: &Path, shown: &str) -> Result<String, String> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| format!("{shown} can't be read: {error}"))?;
    let metadata = file.metadata().map_err(|error| format!("{shown} can't be read: {error}"))?;
    if metadata.is_dir() {
        return Err(format!("{shown} is a folder; list it with glob"));
    }
    if !metadata.is_file() {
        return Err(format!("{shown} is no regular file"));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(format!(
            "{shown} has {} bytes, too many to read; use grep, or bash with head and sed",
            metadata.len()
        ));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| format!("{shown} can't be read: {error}"))?;
    if bytes.contains(&0) {
        return Err(format!("{shown} is a binary file ({} bytes)", bytes.len()));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!(
            "{shown} is not UTF-8 (byte {}); it may be binary, or in another encoding",
            error.utf8_error().valid_up_to()
        )
    })
}

/// Replaces a file's content as a whole, or not at all. Keeps its mode.
fn replace(path: &Path, content: &[u8]) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    let folder = path.parent().ok_or("it has no folder")?;
    std::fs::create_dir_all(folder).map_err(words)?;
    let before = path.metadata().ok();
    if before.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        return Err("it is no regular file".to_owned());
    }
    let mode = before.as_ref().map_or(NEW_FILE_MODE, |metadata| metadata.mode() & 0o7777);
    let mut temporary = tempfile::Builder::new()
        .prefix(".s15-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(words)?;
    temporary.write_all(content).map_err(words)?;
    if let Some(before) = before {
        keep_mode(temporary.as_file(), &before).map_err(words)?;
    }
    temporary.persist(path).map_err(|error| error.error.to_string())?;
    Ok(())
}

fn keep_mode(file: &File, before: &Metadata) -> std::io::Result<()> {
    file.set_permissions(before.permissions())
}

/// The line most like the first line of what was looked for.
fn nearest(body: &str, wanted: &str) -> String {
    let first = wanted.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let likeness = |line: &str| -> usize {
        let line = line.trim();
        if line == first {
            return usize::MAX;
        }
        first
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() > 2 && line.contains(word))
            .map(str::len)
            .sum()
    };
    let best = body
        .lines()
        .enumerate()
        .map(|(index, line)| (likeness(line), index, line))
        .max_by_key(|(likeness, index, _)| (*likeness, usize::MAX - index));
    match best {
        Some((likeness, index, line)) if likeness > 0 => {
            let line: String = line.chars().take(200).collect();
            format!("; the nearest line is {}: {line}", index + 1)
        }
        Some(_) | None => "; read the file again".to_owned(),
    }
}
