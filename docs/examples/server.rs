use std::io::{stdin, stdout, BufRead, BufWriter, Write};

fn main() {
    let epsilon: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut out = BufWriter::new(stdout());
    for line in stdin().lock().lines().map(|line| line.unwrap()) {
        let parts: Vec<&str> = line.split(|c| c == '[' || c == ']').collect();
        let sum: f64 = parts[1].split(',').filter_map(|n| n.trim().parse::<f64>().ok()).sum();
        let mut rest = parts[2].split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok());
        let (runs, mut state) = (rest.next().unwrap(), rest.next().unwrap());
        let mut exponential = || {
            state = state.wrapping_add(0x9E3779B97F4A7C15); // SplitMix64
            let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
            -f64::ln(1.0 - ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64) / epsilon
        };
        for _ in 0..runs {
            writeln!(out, "{}", sum + exponential() - exponential()).unwrap();
        }
        out.flush().unwrap();
    }
}
