//! Output of the verbs: data on standard output, everything else on standard error, with colours where the
//! stream is a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::cli::failure::Failure;
use crate::plan::plain_lines;
use crate::vitals::as_errors;

pub struct Console {
    out: anstream::AutoStream<io::Stdout>,
    err: anstream::AutoStream<io::Stderr>,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

/// Whether standard error takes colours: it is a terminal, and neither `NO_COLOR` nor `TERM=dumb` is set.
pub fn stderr_has_color() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

impl Console {
    pub fn new() -> Self {
        Self { out: anstream::AutoStream::auto(io::stdout()), err: anstream::AutoStream::auto(io::stderr()) }
    }

    pub fn out_has_color(&self) -> bool {
        anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
    }

    /// The width of the terminal in columns, at most 110: longer lines are hard to read.
    pub fn width(&self) -> usize {
        const COMFORTABLE: usize = 110;
        match terminal_size::terminal_size() {
            Some((terminal_size::Width(columns), _)) => usize::from(columns).min(COMFORTABLE),
            None => 100,
        }
    }

    pub fn err_has_color(&self) -> bool {
        stderr_has_color()
    }

    /// Prints data unchanged.
    ///
    /// # Errors
    /// [`Failure::broken_pipe`] when the reader closed the pipe, as in `streamfleet plan | head`.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::broken_pipe(),
            _ => Failure::during("cannot write to standard output", &error),
        })
    }

    /// Prints a message on standard error. A message that can't be written is no reason to stop.
    pub fn tell(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }

    pub fn warn(&mut self, text: &str) {
        let style = AnsiColor::Yellow.on_default().bold();
        self.tell(&format!("{style}warning{style:#}: {}\n", plain_lines(text)));
    }

    pub fn failed(&mut self, message: &str, hint: &str) {
        let (message, hint) = (plain_lines(message), plain_lines(hint));
        self.tell(&format!("{ERROR}error{ERROR:#}: {message}\n  {HELP}help{HELP:#}: {hint}\n"));
    }

    pub fn fail(&mut self, failure: &Failure) -> ExitCode {
        if let Some((first, causes)) = failure.chain.split_first() {
            let mut text = format!("{ERROR}error{ERROR:#}: {}\n", plain_lines(first));
            for cause in causes {
                text.push_str(&format!("  because: {}\n", plain_lines(cause)));
            }
            if let Some(hint) = &failure.hint {
                text.push_str(&format!("  {HELP}help{HELP:#}: {}\n", plain_lines(hint)));
            }
            self.tell(&as_errors(text));
        }
        ExitCode::from(failure.code)
    }

    /// Asks a question. Only the whole word `yes` confirms.
    ///
    /// # Errors
    /// When standard input is no terminal.
    pub fn confirm(&mut self, question: &str) -> Result<bool, Failure> {
        if !io::stdin().is_terminal() {
            return Err(Failure::usage(
                "cannot ask for confirmation, because standard input is not a terminal",
            )
            .hint("read the plan, then run the command with `--yes`"));
        }
        self.tell(&format!("{question} Only `yes` confirms: "));
        let mut answer = String::new();
        io::stdin()
            .read_line(&mut answer)
            .map_err(|error| Failure::during("cannot read the answer", &error))?;
        Ok(answer.trim() == "yes")
    }
}
