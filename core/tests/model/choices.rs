//! The random choices of one case, taken from a string of bytes.

pub struct Choices {
    bytes: Vec<u8>,
    next: usize,
}

impl Choices {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, next: 0 }
    }

    /// Whether there is anything left to choose by.
    pub fn left(&self) -> bool {
        self.next < self.bytes.len()
    }

    /// A number below `bound`; 0, the harmless choice, once the bytes are used up.
    pub fn below(&mut self, bound: u8) -> u8 {
        let byte = self.bytes.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        byte % bound
    }
}
