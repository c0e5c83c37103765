package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// report is where the results go.
type report struct {
	out io.Writer
}

// say writes a line for people.
func (r *report) say(format string, args ...any) {
	fmt.Fprintf(r.out, format+"\n", args...)
}

// result writes a line for programs.
func (r *report) result(name string, value float64, unit string) {
	fmt.Fprintf(r.out, "bench %s %s %s\n", name, number(value), unit)
}

// atMost says whether the goal for a result is met.
func (r *report) atMost(name string, value, most float64) {
	r.goal(value <= most, "%s is %s, at most %s is wanted", name, number(value), number(most))
}

// goal says whether a goal is met, and why.
func (r *report) goal(met bool, format string, args ...any) {
	verdict := "missed"
	if met {
		verdict = "met"
	}
	r.say("goal "+verdict+": "+format, args...)
}

// spread writes p50 and p95 of the times, and returns p50 in µs.
func (r *report) spread(name string, took times) float64 {
	median := microseconds(took.percentile(50))
	r.result(name+"_p50_us", median, "us")
	r.result(name+"_p95_us", microseconds(took.percentile(95)), "us")
	return median
}

// number is the value with two decimals at most.
func number(value float64) string {
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}

// microseconds is a duration in µs, parts included.
func microseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond)
}

// times are how long one kind of request took, sorted.
type times []time.Duration

func newTimes(took []time.Duration) times {
	return slices.Sorted(slices.Values(took))
}

// percentile returns the shortest time that this many percent took at most.
func (t times) percentile(percent int) time.Duration {
	rank := (len(t)*percent + 99) / 100 // rounded up, counted from one
	return t[max(rank, 1)-1]
}
