//! One instruction of a packet filter as text, as tcpdump prints it: `(000) ldh      [12]`.

/// A line for the instruction at a place, given as its four numbers: code, jump if true, jump if false, value.
pub(crate) fn line(at: usize, numbers: &str) -> String {
    let mut numbers = numbers.split_whitespace().map(|number| number.parse::<u32>().unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    let (code, yes, no, k) = (number(), number(), number(), number());
    let (name, operand) = words(code, k, at);
    let jump = code & 7 == 5 && code & 0xf0 != 0;
    let text = format!("({at:03}) {name:<8} {operand:<16}");
    let text =
        if jump { format!("{text} jt {}\tjf {}", at + 1 + yes as usize, at + 1 + no as usize) } else { text };
    format!("{}\n", text.trim_end())
}

/// The name and the operand of an instruction (the classes of BPF, from McCanne and Jacobson's paper on).
fn words(code: u32, k: u32, at: usize) -> (String, String) {
    let size = |code: u32| match code & 0x18 {
        0x00 => "",
        0x08 => "h",
        _ => "b",
    };
    match code & 7 {
        // Loads into the accumulator or the index register.
        class @ (0 | 1) => {
            let register = if class == 0 { "ld" } else { "ldx" };
            match code & 0xe0 {
                0x00 => (register.into(), format!("#{k:#x}")),
                0x20 => (format!("{register}{}", size(code)), format!("[{k}]")),
                0x40 => (format!("{register}{}", size(code)), format!("[x + {k}]")),
                0x60 => (register.into(), format!("M[{k}]")),
                0x80 => (register.into(), "#pktlen".into()),
                _ => (format!("{register}{}", size(code)), format!("4*([{k}]&0xf)")),
            }
        }
        2 => ("st".into(), format!("M[{k}]")),
        3 => ("stx".into(), format!("M[{k}]")),
        4 => {
            let names = ["add", "sub", "mul", "div", "or", "and", "lsh", "rsh", "neg", "mod", "xor"];
            let name = names.get((code >> 4 & 0xf) as usize).copied().unwrap_or("alu");
            let operand = match code & 0xf8 {
                0x80 => String::new(),
                _ if code & 8 != 0 => "x".into(),
                _ => format!("#{k:#x}"),
            };
            (name.into(), operand)
        }
        5 => {
            let names = ["ja", "jeq", "jgt", "jge", "jset"];
            let name = names.get((code >> 4 & 0xf) as usize).copied().unwrap_or("jmp");
            let operand = match code & 0xf0 {
                0 => (at + 1 + k as usize).to_string(),
                _ if code & 8 != 0 => "x".into(),
                _ => format!("#{k:#x}"),
            };
            (name.into(), operand)
        }
        6 => ("ret".into(), if code & 0x18 == 0x10 { String::new() } else { format!("#{k}") }),
        _ => (if code & 0xf8 == 0 { "tax" } else { "txa" }.into(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_written_as_tcpdump_writes_them() {
        for (at, numbers, text) in [
            (0, "40 0 0 12", "(000) ldh      [12]\n"),
            (1, "21 0 5 34525", "(001) jeq      #0x86dd          jt 2\tjf 7\n"),
            (2, "48 0 0 20", "(002) ldb      [20]\n"),
            (3, "177 0 0 14", "(003) ldxb     4*([14]&0xf)\n"),
            (4, "72 0 0 16", "(004) ldh      [x + 16]\n"),
            (5, "69 3 0 8191", "(005) jset     #0x1fff          jt 9\tjf 6\n"),
            (6, "6 0 0 65535", "(006) ret      #65535\n"),
            (7, "84 0 0 15", "(007) and      #0xf\n"),
            (8, "5 0 0 2", "(008) ja       11\n"),
        ] {
            assert_eq!(line(at, numbers), text);
        }
    }
}
