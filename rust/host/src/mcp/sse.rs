//! Events of a server (`text/event-stream`): the data of each, out of bytes that come in pieces. Whoever reads the
//! stream bounds its bytes.

/// Reads a stream of events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

impl Events {
    /// Takes the next bytes; gives the data of every event that ends in them to `take`.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Vec<u8>)) {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if !line.is_empty() {
                self.add(&line);
            } else if std::mem::take(&mut self.has_data) {
                take(std::mem::take(&mut self.data));
            }
        }
    }

    /// Takes a line. All but data is left out.
    fn add(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data") else {
            return;
        };
        let data = match data.split_first() {
            None => data,
            Some((b':', data)) => data.strip_prefix(b" ").unwrap_or(data),
            Some(_) => return,
        };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_pieces() {
        let stream = ": hello\r\n\r\nevent: message\ndata: {\"a\":\ndata:1}\nid: 3\n\ndatabase: x\n\ndata\n\ndata: cut";
        for n in [1, 2, 7, 1000] {
            let (mut events, mut taken) = (Events::default(), Vec::new());
            for piece in stream.as_bytes().chunks(n) {
                events.feed(piece, |data| taken.push(String::from_utf8(data).unwrap()));
            }
            assert_eq!(taken, ["{\"a\":\n1}", ""]);
        }
    }
}
