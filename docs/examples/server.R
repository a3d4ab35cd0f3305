epsilon <- as.numeric(commandArgs(trailingOnly = TRUE)[1])
requests <- file("stdin", "r")
while (length(line <- readLines(requests, 1)) > 0) {
  numbers <- scan(text = sub(".*\\[(.*)\\].*", "\\1", line), sep = ",", quiet = TRUE)
  runs <- as.integer(sub('.*"runs": ([0-9]+).*', "\\1", line))
  cat(sprintf("%.17g\n", sum(numbers) + (rexp(runs) - rexp(runs)) / epsilon), sep = "")
  flush(stdout())
}
