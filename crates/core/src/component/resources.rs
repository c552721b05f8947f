//! Resource requests and limits of containers.

use serde_json::{Value, json};

/// The size of a container. Memory is requested and limited alike; CPU is only requested, since a limit would
/// throttle a broker that has to catch up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    pub cpu_millis: u64,
    pub memory_mib: u64,
}

impl Resources {
    pub fn plus(self, other: Resources) -> Resources {
        Resources {
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_mib: self.memory_mib.saturating_add(other.memory_mib),
        }
    }

    pub fn max(self, other: Resources) -> Resources {
        Resources {
            cpu_millis: self.cpu_millis.max(other.cpu_millis),
            memory_mib: self.memory_mib.max(other.memory_mib),
        }
    }

    pub fn to_value(self) -> Value {
        let (cpu, memory) = (millis(self.cpu_millis), mebibytes(self.memory_mib));
        json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}})
    }
}

pub fn millis(amount: u64) -> String {
    canonical(amount, 1000, &["m", "", "k", "M"])
}

pub fn count(amount: u64) -> String {
    canonical(amount, 1000, &["", "k", "M"])
}

pub fn mebibytes(amount: u64) -> String {
    canonical(amount, 1024, &["Mi", "Gi", "Ti", "Pi"])
}

/// The API server stores a quantity with the largest suffix that leaves a whole number. Sending that form
/// avoids a difference when the object is read back.
fn canonical(amount: u64, step: u64, suffixes: &[&str]) -> String {
    match suffixes {
        _ if amount == 0 => "0".to_owned(),
        [_, larger @ ..] if !larger.is_empty() && amount.is_multiple_of(step) => {
            canonical(amount / step, step, larger)
        }
        _ => format!("{amount}{}", suffixes.first().unwrap_or(&"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_the_form_in_which_it_is_stored() {
        assert_eq!([0, 50, 2900, 3000, 2_000_000].map(millis), ["0", "50m", "2900m", "3", "2k"]);
        assert_eq!([0, 23, 1000, 1500].map(count), ["0", "23", "1k", "1500"]);
        assert_eq!([0, 256, 1536, 17408, 1 << 20].map(mebibytes), ["0", "256Mi", "1536Mi", "17Gi", "1Ti"]);
    }
}
