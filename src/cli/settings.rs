//! Which tree, state, output and secrets a verb works with: from flags, the environment, a config file or the defaults.

use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;

use crate::cli::failure::Failure;
use crate::config::Config;

/// The folder in a tree for what is kept there by default, with a dot, so that no spec is read from it.
pub const OWN_FOLDER: &str = ".streamfleet";
/// A `.gitignore` that ignores everything beside and below it, itself too.
pub const IGNORE_ALL: &str = "*\n";

/// The spec tree and the installation that a verb works with.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// The folder of spec files.
    #[arg(value_name = "TREE", default_value = ".")]
    pub tree: Utf8PathBuf,
    #[command(flatten)]
    pub installation: InstallationArgs,
}

/// Where an installation keeps its things. Each has a place inside the tree by default, in a folder that no spec is read
/// from and that git ignores.
#[derive(Debug, Clone, Args)]
pub struct InstallationArgs {
    /// The settings of the installation, a TOML file. By default every setting has its default.
    #[arg(long, value_name = "FILE", env = "STREAMFLEET_CONFIG")]
    pub config: Option<Utf8PathBuf>,
    /// The folder of the state. [default: TREE/.streamfleet/state]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_STATE_DIR")]
    pub state_dir: Option<Utf8PathBuf>,
    /// The folder that directory fleets write to. [default: TREE/.streamfleet/output]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_OUTPUT_DIR")]
    pub output_dir: Option<Utf8PathBuf>,
    /// The folder of `from_file` secrets, one folder in it an organization. [default: TREE/.streamfleet/secrets]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_SECRETS_DIR")]
    pub secrets_dir: Option<Utf8PathBuf>,
}

/// Everything that a verb needs to know before it looks at a spec.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tree as the person named it, for messages.
    pub tree_as_given: Utf8PathBuf,
    /// The tree, absolute and without links.
    pub tree: Utf8PathBuf,
    /// The folder of the state.
    pub state_dir: Utf8PathBuf,
    /// The folder that directory fleets write to.
    pub output_dir: Utf8PathBuf,
    /// The folder of `from_file` secrets.
    pub secrets_dir: Utf8PathBuf,
    /// The settings of the installation.
    pub config: Config,
}

impl Settings {
    /// Settles every setting: a flag or variable wins over the file, the file over the default.
    ///
    /// # Errors
    /// When the tree is not a folder, or the config file can't be read or understood.
    pub fn settle(args: &TreeArgs) -> Result<Settings, Failure> {
        let tree = canonical_tree(&args.tree)?;
        let InstallationArgs { config, state_dir, output_dir, secrets_dir } = &args.installation;
        let config = config.as_deref().map(read_config).transpose()?.unwrap_or_default();
        let choose = |flag: &Option<Utf8PathBuf>, file: &Option<Utf8PathBuf>, name: &str| {
            let given = flag.as_ref().or(file.as_ref()).cloned();
            given.unwrap_or_else(|| tree.join(OWN_FOLDER).join(name))
        };
        let settings = Settings {
            state_dir: choose(state_dir, &config.state_dir, "state"),
            output_dir: choose(output_dir, &config.output_dir, "output"),
            secrets_dir: choose(secrets_dir, &config.secrets_dir, "secrets"),
            tree_as_given: args.tree.clone(),
            tree,
            config,
        };
        settings.refuse_part_of_a_tree()?;
        settings.refuse_output_among_specs()?;
        Ok(settings)
    }

    /// A folder of a tree has no installation of its own: a second state would not know what the first made.
    fn refuse_part_of_a_tree(&self) -> Result<(), Failure> {
        if self.state_dir != self.tree.join(OWN_FOLDER).join("state") || self.state_dir.is_dir() {
            return Ok(());
        }
        let mut above = self.tree.ancestors().skip(1);
        match above.find(|folder| folder.join(OWN_FOLDER).join("state").is_dir()) {
            None => Ok(()),
            Some(whole) => Err(Failure::new(format!(
                "`{}` is a part of the spec tree `{whole}`, which was applied as a whole",
                self.tree_as_given
            ))
            .hint(format!(
                "name the tree: `{whole}`; to make this one a tree of its own, give it a --state-dir"
            ))),
        }
    }

    /// Manifests among the specs would be read as specs.
    fn refuse_output_among_specs(&self) -> Result<(), Failure> {
        let output = std::path::absolute(&self.output_dir).unwrap_or_else(|_| self.output_dir.clone().into());
        let Ok(inner) = output.strip_prefix(&self.tree) else { return Ok(()) };
        if inner.components().any(|name| name.as_os_str().to_string_lossy().starts_with('.')) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the output folder `{}` is among the specs, and would be read as specs",
            self.output_dir
        ))
        .hint("choose a folder beside the tree, or one whose name begins with a dot"))
    }

    /// Makes git leave the folder in the tree alone, where anything is kept in it. A file that is there already stays.
    ///
    /// # Errors
    /// When the folder or the file can't be written.
    pub fn ignore_own_folder(&self) -> io::Result<()> {
        let own = self.tree.join(OWN_FOLDER);
        if ![&self.state_dir, &self.output_dir, &self.secrets_dir].iter().any(|dir| dir.starts_with(&own)) {
            return Ok(());
        }
        std::fs::create_dir_all(&own)?;
        match std::fs::File::create_new(own.join(".gitignore")) {
            Ok(mut file) => file.write_all(IGNORE_ALL.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn canonical_tree(tree: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let canonical = tree.canonicalize_utf8().map_err(|error| {
        Failure::during(format!("could not open the spec tree `{tree}`"), &error)
            .hint("name the folder that holds the spec files; `streamfleet init DIR` makes one to start from")
    })?;
    if !canonical.is_dir() {
        return Err(Failure::new(format!("the spec tree `{tree}` is not a folder"))
            .hint("name the folder that holds the file"));
    }
    Ok(canonical)
}

fn read_config(path: &Utf8Path) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::during(format!("could not read the config file `{path}`"), &error))?;
    Config::parse(&text).map_err(|error| {
        Failure::new(format!(
            "could not understand the config file `{path}`\n{}",
            error.to_string().trim_end()
        ))
    })
}
