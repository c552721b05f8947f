//! The plan as text: each change with its cause, its consequences, and how to resolve what it waits for.

mod markdown;
mod objects;
mod outline;
mod parts;
mod reason;
mod remarks;
mod size;
mod terminal;
mod text;
mod words;

pub use markdown::markdown;
pub use outline::{
    EntryPlace, Outline, OutlineApproval, OutlineItem, OutlineSection, PlanEntry, entries, outline, sections,
};
pub use parts::summary_sentence;
pub use reason::reason;
pub use terminal::{Audience, display};
pub use text::{plain, plain_lines};
pub use words::wait_remedy;
