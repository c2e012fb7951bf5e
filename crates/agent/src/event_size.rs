//! The size of one event in a stream of server-sent events, as far as it has come: a server that never ends an event is
//! found out before the event is held as a whole.

/// The size of the event that is being read.
#[derive(Debug, Default)]
pub(crate) struct EventSize {
    /// The bytes of its complete lines; comments do not stay.
    lines: usize,
    /// The bytes of the line that is not complete.
    line: usize,
    is_comment: bool,
    after_return: bool,
}

impl EventSize {
    /// Counts the next bytes, and returns the largest size that an event had within them.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> usize {
        let mut largest = 0;
        for byte in bytes {
            let ends_return = std::mem::replace(&mut self.after_return, *byte == b'\r') && *byte == b'\n';
            match byte {
                b'\n' if ends_return => {}
                b'\n' | b'\r' => self.end_line(),
                byte => {
                    self.is_comment |= self.line == 0 && *byte == b':';
                    self.line += 1;
                    largest = largest.max(self.lines + self.line);
                }
            }
        }
        largest
    }

    fn end_line(&mut self) {
        if self.line == 0 {
            self.lines = 0;
        } else if !self.is_comment {
            // The end of the line counts too: empty lines of data are kept as well.
            self.lines += self.line + 1;
        }
        (self.line, self.is_comment) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_grows_whether_it_is_one_line_or_many() {
        let mut line = EventSize::default();
        assert_eq!((line.add(&[b'x'; 1024]), line.add(&[b'x'; 1024])), (1024, 2048));
        for end in [&b"\n"[..], b"\r\n", b"\r"] {
            let mut lines = EventSize::default();
            let one_line = [&b"data: x"[..], end].concat();
            let sizes: Vec<usize> = (0..3).map(|_| lines.add(&one_line)).collect();
            assert_eq!(sizes, [7, 15, 23]);
        }
    }

    #[test]
    fn events_and_comments_do_not_add_up() {
        for (begin, end) in [(&b"data: "[..], &b"\r\n\r\n"[..]), (b"data: ", b"\n\n"), (b": ", b"\n")] {
            let mut size = EventSize::default();
            for _ in 0..4 {
                size.add(begin);
                assert_eq!(size.add(&[b'x'; 100]), begin.len() + 100);
                size.add(end);
            }
        }
    }
}
