//! Commands that are proposed to a person, so that they work when they are pasted.

use camino::Utf8Path;

use crate::cli::settings::InstallationArgs;

/// The end of a command that names a tree, and an installation as the person named it: by flags, or by variables that another
/// terminal may not have.
pub fn arguments(tree: Option<&Utf8Path>, installation: &InstallationArgs) -> String {
    let InstallationArgs { config, state_dir, output_dir, secrets_dir } = installation;
    let flags = [
        ("--config", config),
        ("--state-dir", state_dir),
        ("--output-dir", output_dir),
        ("--secrets-dir", secrets_dir),
    ];
    let tree = tree.map(quoted).into_iter();
    let flags =
        flags.into_iter().filter_map(|(flag, path)| Some(format!("{flag} {}", quoted(path.as_ref()?))));
    tree.chain(flags).collect::<Vec<_>>().join(" ")
}

/// A command with these arguments, of which some may be empty.
pub fn line(words: &[&str]) -> String {
    let words = words.iter().filter(|word| !word.is_empty()).copied();
    ["streamfleet"].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// A path as a shell takes it for one word, and a program for no flag.
pub fn quoted(path: &Utf8Path) -> String {
    let path = match path.as_str() {
        flag if flag.starts_with('-') => format!("./{flag}"),
        path => path.to_owned(),
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:,@%=".contains(letter);
    if !path.is_empty() && path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, expected) in [
            ("specs/kafka-1.d", "specs/kafka-1.d"),
            ("my specs", "'my specs'"),
            ("ann's", "'ann'\\''s'"),
            ("$(reboot)", "'$(reboot)'"),
            ("-x", "./-x"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(quoted(path.into()), expected);
        }
    }
}
