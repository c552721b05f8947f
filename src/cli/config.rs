//! `streamfleet config`: checks a file of settings, shows the active ones, prints a sample.

mod likely_mistakes;

use camino::Utf8PathBuf;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::api;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::OutputFormat;
use crate::cli::paths::absolute_path;
use crate::cli::settings::{self, Settings, TreeArgs};
use crate::config::{self, Listen, OperatorFault};
use crate::target::acme::Authority;

/// The settings of an installation: check a file of settings, show the active ones, or print a sample.
#[derive(Debug, Subcommand)]
pub enum Config {
    Check(Check),
    Show(Show),
    Sample(Sample),
}

/// Check a file of settings, and the files that it names.
#[derive(Debug, Args)]
pub struct Check {
    /// The file of settings.
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,
}

/// Print every setting with its value, and whether a flag, a variable, the file or the default sets it.
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    tree: TreeArgs,
    /// Print a table, JSON or YAML.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

/// Print a file with every setting, its meaning and its default, all commented out.
#[derive(Debug, Args)]
pub struct Sample;

/// An active setting and its origin.
#[derive(Debug, Serialize)]
struct Setting {
    /// The name in the file: `api.socket`.
    name: String,
    value: Value,
    /// The origin, in words: `flag --state-dir`, `default`.
    from: String,
}

/// The parsed arguments say where each value came from.
pub fn run(verb: &Config, arguments: &ArgMatches, console: &mut Console) -> Result<u8, Failure> {
    match verb {
        Config::Check(verb) => check(verb, console),
        Config::Show(verb) => show(verb, arguments, console),
        Config::Sample(Sample) => console.print(&config::sample()).map(|()| exit::OK),
    }
}

fn check(verb: &Check, console: &mut Console) -> Result<u8, Failure> {
    let (table, config) = settings::read_config(&verb.file)?;
    let unsound = |why: &str| Failure::new(format!("the config file `{}` is invalid\n{why}", verb.file));
    settings::refuse_shared_folder(
        [&config.state_dir, &config.output_dir, &config.secrets_dir].map(Option::as_ref),
    )
    .map_err(|why| unsound(&why).hint(settings::OWN_FOLDERS))?;
    for version in config.operators.strimzi.keys() {
        let fault = |fault: OperatorFault| unsound(&fault.message).hint(fault.hint);
        config.operators.strimzi(version).map_err(fault)?;
    }
    if let Some(acme) = &config.acme {
        let usable = Authority::new(acme.clone()).check();
        usable.map_err(|fault| unsound(&fault.to_string()).hint(fault.hint()))?;
    }
    let certificate = api::Files::of(&config.api).map(|files| files.doubts(Timestamp::now()));
    let certificate = match certificate.transpose() {
        Err(unusable) if !unusable.is_unread => return Err(unsound(&unusable.why).hint(unusable.hint)),
        // The files may be unreadable for the user that runs this check.
        Err(_) => Vec::new(),
        Ok(doubts) => doubts.unwrap_or_default(),
    };
    let homeless = likely_mistakes::homeless(&config, &settings::folder_of(&verb.file));
    likely_mistakes::of(&config, &table)
        .iter()
        .chain(&homeless)
        .chain(&certificate)
        .for_each(|doubt| console.warn(doubt));
    console.print(&format!("{} is valid\n", verb.file))?;
    Ok(exit::OK)
}

fn show(verb: &Show, arguments: &ArgMatches, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let all = all(&settings, verb, arguments)?;
    let text = match verb.format.data(&all)? {
        Some(text) => text,
        None => table(&all),
    };
    console.print(&text)?;
    Ok(exit::OK)
}

/// Lists the tree and the folders first, then the settings that only the file has.
fn all(settings: &Settings, verb: &Show, arguments: &ArgMatches) -> Result<Vec<Setting>, Failure> {
    let file = verb.tree.installation.config.as_ref();
    let (table, mut config) = match file {
        Some(path) => settings::read_config(path)?,
        None => (toml::Table::new(), settings.config.clone()),
    };
    let (super_users, listen) = (settings::super_users_by_variable()?, settings::listen_by_variable()?);
    let by_variable = [
        ("api.super_user_emails", settings::SUPER_USERS, super_users.is_some()),
        ("api.listen", settings::LISTEN, listen.is_some()),
    ];
    config.api.super_user_emails = super_users.unwrap_or(config.api.super_user_emails);
    config.api.listen = listen.or(config.api.listen);
    // The default depends on the super users.
    config.api.listen = config.api.address().map(|listen| Listen::On(listen.address)).or(config.api.listen);
    let variable = |name: &str| by_variable.iter().find(|(setting, _, is_set)| *setting == name && *is_set);
    let by_file = |name: &str| match (variable(name), file) {
        (Some((_, variable, _)), _) => format!("variable {variable}"),
        (None, Some(path)) if is_in(&table, name) => format!("file {path}"),
        _ => "default".to_owned(),
    };
    let argument = |id: &str, name: &str, value: Option<&Utf8PathBuf>| Setting {
        name: id.to_owned(),
        value: value.map(|path| absolute_path(path).as_str().into()).unwrap_or_default(),
        from: given(arguments, id, name).unwrap_or_else(|| by_file(id)),
    };
    let tree = match settings.from_git {
        true => {
            let from = "not used: specs are fetched from `source.git`".to_owned();
            Setting { name: "tree".to_owned(), value: Value::Null, from }
        }
        false => argument("tree", "TREE", Some(&settings.tree)),
    };
    let mut all = vec![
        tree,
        argument("config", "--config", file),
        argument("state_dir", "--state-dir", Some(&settings.state_dir)),
        argument("output_dir", "--output-dir", Some(&settings.output_dir)),
        argument("secrets_dir", "--secrets-dir", Some(&settings.secrets_dir)),
    ];
    let config = serde_json::to_value(&config)
        .map_err(|error| Failure::during("cannot write the settings", &error))?;
    let mut rest = Vec::new();
    flatten_values("", &config, &mut rest);
    let is_folder = |name: &str| all.iter().any(|setting| setting.name == name);
    rest.retain(|(name, _)| !is_folder(name));
    all.extend(rest.into_iter().map(|(name, value)| Setting { from: by_file(&name), name, value }));
    Ok(all)
}

fn given(arguments: &ArgMatches, id: &str, name: &str) -> Option<String> {
    match arguments.value_source(id)? {
        ValueSource::CommandLine if name.starts_with('-') => Some(format!("flag {name}")),
        ValueSource::CommandLine => Some("argument".to_owned()),
        ValueSource::EnvVariable => Some(format!("variable STREAMFLEET_{}", id.to_uppercase())),
        _ => None,
    }
}

/// Collects all values that are not objects, with their dotted paths.
pub(super) fn flatten_values(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let name = if name.contains('.') { format!("\"{name}\"") } else { name.clone() };
                flatten_values(&if path.is_empty() { name } else { format!("{path}.{name}") }, value, found);
            }
        }
        value => found.push((path.to_owned(), value.clone())),
    }
}

fn is_in(table: &toml::Table, name: &str) -> bool {
    let mut found = Vec::new();
    // A TOML table always converts to JSON, except for dates, and no setting is a date.
    flatten_values("", &serde_json::to_value(table).unwrap_or_default(), &mut found);
    found.iter().any(|(known, _)| known == name)
}

fn table(settings: &[Setting]) -> String {
    let shown: Vec<(&str, String, &str)> = settings
        .iter()
        .map(|setting| {
            let value = match &setting.value {
                Value::Null => "none".to_owned(),
                Value::String(text) => text.clone(),
                Value::Object(_) => "{}".to_owned(),
                other => other.to_string(),
            };
            (setting.name.as_str(), value, setting.from.as_str())
        })
        .collect();
    let name = shown.iter().map(|(name, _, _)| name.len()).max().unwrap_or_default();
    let value = shown.iter().map(|(_, value, _)| value.len()).max().unwrap_or_default().min(60);
    shown.iter().map(|row| format!("{:name$}  {:value$}  {}\n", row.0, row.1, row.2)).collect()
}
