package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"
)

func main() {
	epsilon, _ := strconv.ParseFloat(os.Args[1], 64)
	rng := rand.New(rand.NewSource(time.Now().UnixNano()))
	in, out := json.NewDecoder(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		var request struct {
			Input []float64
			Runs  int
		}
		if in.Decode(&request) != nil {
			return
		}
		sum := 0.0
		for _, number := range request.Input {
			sum += number
		}
		for ; request.Runs > 0; request.Runs-- {
			fmt.Fprintln(out, sum+(rng.ExpFloat64()-rng.ExpFloat64())/epsilon)
		}
		out.Flush()
	}
}
