//! What ends the wait between two rounds.

use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::cli::failure::Failure;
use crate::round::Memory;

use super::feed::Feed;

/// How long is waited for more of the same: a client that writes one object often writes several.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// What the next round waits for.
pub(super) struct Wake<'a> {
    pub(super) feed: &'a mut Feed,
    pub(super) memory: &'a Memory,
    /// When there is a round whatever happens.
    pub(super) next: Timestamp,
}

impl Wake<'_> {
    /// Waits for any of it, and says whether it is time to stop instead.
    pub(super) async fn or(self, stop: &mut Stop) -> bool {
        let pause = self.next.duration_since(Timestamp::now());
        tokio::select! {
            () = until_asked(&mut stop.asked) => return true,
            () = self.memory.changed() => sleep(DEBOUNCE).await,
            () = self.feed.changed() => {}
            _ = stop.hangup.recv() => stop.hung_up = true,
            // What is due already has no pause.
            () = sleep(Duration::try_from(pause).unwrap_or_default()) => {}
        }
        if stop.hung_up {
            self.feed.hurry();
        }
        false
    }
}

/// Whether somebody asked the process to stop, or to look at once and read its settings anew.
pub(super) struct Stop {
    asked: watch::Receiver<bool>,
    hangup: Signal,
    /// Whether that came.
    hung_up: bool,
}

impl Stop {
    /// By SIGINT, as from a terminal, or SIGTERM, as from a service manager. SIGHUP asks for the rest.
    pub(super) fn on_signals(runtime: &Runtime) -> Result<Stop, Failure> {
        let _inside = runtime.enter();
        let listen =
            |kind| signal(kind).map_err(|error| Failure::during("could not listen for signals", &error));
        let (mut interrupt, mut terminate) =
            (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        let hangup = listen(SignalKind::hangup())?;
        let (tell, asked) = watch::channel(false);
        runtime.spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tell.send_replace(true);
            // Nobody is asked twice.
            tell.closed().await;
        });
        Ok(Stop { asked, hangup, hung_up: false })
    }

    /// Whether SIGHUP came since this was asked last.
    pub(super) fn takes_hangup(&mut self) -> bool {
        std::mem::take(&mut self.hung_up)
    }

    /// Whether it was asked.
    pub(super) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Comes back when it is.
    pub(super) async fn asked(&mut self) {
        until_asked(&mut self.asked).await;
    }
}

async fn until_asked(asked: &mut watch::Receiver<bool>) {
    // Who tells lives as long as this does.
    let _ = asked.wait_for(|asked| *asked).await;
}
