//! Names of the sessions that do tasks.

/// The name of the session that does a task.
pub(crate) fn task_session(parent: &str, task_id: &str) -> String {
    format!("task:{parent}:{task_id}")
}

/// Returns whether a session does a task that the other one gave, or a task of such a task.
pub(crate) fn is_task_of(session: &str, parent: &str) -> bool {
    let mut rest = session;
    while let Some(inner) = rest.strip_prefix("task:") {
        if inner.strip_prefix(parent).is_some_and(|after| after.starts_with(':')) {
            return true;
        }
        rest = inner;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_of_a_session_and_their_tasks_belong_to_its_calls() {
        assert!(is_task_of("task:default:1", "default"));
        assert!(is_task_of("task:task:default:1:2", "default"));
        assert!(!is_task_of("task:other:1", "default"));
        assert!(!is_task_of("default", "default"));
        assert!(!is_task_of("task:default2:1", "default"));
    }
}
