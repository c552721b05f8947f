//! Compares the settings with those of the last use of the state: a less strict mode, another output folder.

use camino::{Utf8Path, Utf8PathBuf};

use crate::cli::command;
use crate::cli::failure::Failure;
use crate::cli::paths::absolute_path;
use crate::cli::settings::Settings;
use crate::config::Mode;
use crate::state::LastUsed;

pub struct SettingsComparison {
    now: LastUsed,
    state_dir: Utf8PathBuf,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// The reason why confirmation is needed; none where it isn't.
    refusal: Option<Failure>,
}

impl SettingsComparison {
    /// Compares the settings with what the state recorded.
    pub fn of(settings: &Settings) -> Result<SettingsComparison, Failure> {
        let state_dir = settings.state_dir.clone();
        let attempt = || format!("cannot open the state in `{state_dir}`");
        let before = LastUsed::read(&state_dir).map_err(|error| Failure::of_state(attempt(), &error))?;
        let now = LastUsed {
            mode: settings.config.policy.mode,
            config: settings.file.as_deref().map(absolute_path),
            output_dir: absolute_path(&settings.output_dir),
        };
        let mut compared = SettingsComparison { now, state_dir, warnings: Vec::new(), refusal: None };
        if let Some(before) = &before {
            compared.mode(before, settings);
            compared.output(before);
        }
        Ok(compared)
    }

    /// Checks for a less strict mode. It counts as intended if the settings name a mode or are the same file
    /// as before, otherwise as a forgotten `--config`.
    fn mode(&mut self, before: &LastUsed, settings: &Settings) {
        let (was, is) = (before.mode, self.now.mode);
        if strictness(is) >= strictness(was) {
            return;
        }
        let (was, is) = (was.as_str(), is.as_str());
        let by = match &before.config {
            Some(file) => format!(", by the settings {file}"),
            None => String::new(),
        };
        let now = match &self.now.config {
            None => format!("now there are no settings, so it is `{is}`"),
            Some(file) => format!("the settings {file} make it `{is}` now"),
        };
        let text = format!("`policy.mode` was `{was}` when this state was last used{by}; {now}");
        let is_same_file = match (&self.now.config, &before.config) {
            (Some(now), Some(before)) => is_same(now, before),
            _ => false,
        };
        if !settings.names_mode && !is_same_file {
            let name = match &before.config {
                Some(file) => format!("--config {}", command::quoted(file)),
                None => format!("`mode = \"{was}\"` under `[policy]`"),
            };
            self.refusal = Some(Failure::new(text.clone()).hint(format!(
                "pass {name}; to continue with the new mode, run `streamfleet apply` without --yes and confirm its plan"
            )));
        }
        self.warnings.push(text);
    }

    /// Warns of files in the former output folder, which are no longer updated.
    fn output(&mut self, before: &LastUsed) {
        let old = &before.output_dir;
        let holds_something = || std::fs::read_dir(old).is_ok_and(|mut found| found.next().is_some());
        if !is_same(old, &self.now.output_dir) && holds_something() {
            self.warnings.push(format!(
                "output folder changed from {old} to {}. If that isn't intended, pass the former settings, or \
                 `--output-dir {}`. Otherwise the old folder is no longer maintained and still contains private keys: \
                 delete it once nothing uses it any more",
                self.now.output_dir,
                command::quoted(old)
            ));
        }
    }

    /// Refuses to go on without confirmation when the settings seem to be forgotten.
    ///
    /// # Errors
    /// Which setting became less strict, and how to name the former settings.
    pub fn refuse(&mut self) -> Result<(), Failure> {
        self.refusal.take().map_or(Ok(()), Err)
    }

    /// Records the current settings, unless they seem to be forgotten and that was not confirmed.
    pub fn remember(&self, is_agreed: bool) -> Result<(), Failure> {
        if self.refusal.is_some() && !is_agreed {
            return Ok(());
        }
        self.now
            .write(&self.state_dir)
            .map_err(|error| Failure::of_state("cannot record the settings in use", &error))
    }
}

fn strictness(mode: Mode) -> u8 {
    match mode {
        Mode::Auto => 0,
        Mode::Approve => 1,
        Mode::PlanOnly => 2,
    }
}

fn is_same(one: &Utf8Path, other: &Utf8Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
