package audit

import (
	"strings"
	"time"
	"unicode/utf8"
)

// The most bytes that a record keeps of one text. Some texts are the caller's,
// and a megabyte of workload name must not become a line that the log pipeline
// drops. A stranger's text is cut where the longest name of Kubernetes ends.
const (
	MaxText         = 1024
	MaxStrangerText = 256
)

// bounded cuts what a caller may have made long and puts times into UTC. The
// texts that the hub itself made are short already.
func bounded(r Record) Record {
	most := MaxText
	if r.Event.ByStranger() {
		most = MaxStrangerText
	}
	for _, at := range []*time.Time{&r.Time, &r.ExpiresAt, &r.RevokesAt} {
		*at = writable(*at)
	}
	for _, text := range []*string{
		&r.RequestID, &r.AuditID, &r.User, &r.Issuer, &r.Subject, &r.Workload, &r.Cell, &r.Message, &r.JTI, &r.Kind, &r.Name, &r.Target, &r.Run,
	} {
		*text = cut(*text, most)
	}
	return r
}

// writable is the time in UTC. One that JSON has no text for, which only a cell
// that lies sends, is as good as none, and must not make its record unwritable.
func writable(at time.Time) time.Time {
	at = at.UTC()
	if at.Year() < 0 || at.Year() > 9999 {
		return time.Time{}
	}
	return at
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "…"
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end]) + mark
}
