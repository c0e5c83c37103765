package keyset

import (
	"errors"
	"strconv"
	"time"
)

// Date is a NumericDate (RFC 7519 section 2): seconds since 1970, until the year
// 9999. A number outside would wrap around to some other time.
type Date struct{ time.Time }

const maxDate = 253402300799

// UnmarshalJSON reads a number; what follows the point is dropped.
func (d *Date) UnmarshalJSON(b []byte) error {
	seconds, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	if !(seconds >= 0 && seconds <= maxDate) { // nor is it NaN
		return errors.New("the date is not between the years 1970 and 9999")
	}
	d.Time = time.Unix(int64(seconds), 0)
	return nil
}

// String is the date in UTC, as RFC 3339 has it.
func (d *Date) String() string { return d.UTC().Format(time.RFC3339) }
