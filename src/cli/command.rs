//! Commands suggested to the user, quoted so that they can be pasted.

use camino::Utf8Path;

use crate::cli::settings::InstallationArgs;

/// Returns the arguments that name the tree and the installation. Paths that came from variables become
/// flags, since another terminal may not have the variables.
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

/// Returns a command line. Empty words are left out.
pub fn line(words: &[&str]) -> String {
    let words = words.iter().filter(|word| !word.is_empty()).copied();
    ["streamfleet"].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Quotes a path as one word for a shell, and prefixes `./` where it would be parsed as a flag.
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
