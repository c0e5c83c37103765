package capacity

// Demand is what a request adds to a cell. The zero value adds nothing.
type Demand struct {
	amounts Amounts
	core    [coreCount]float64
	rare    bool // it has other resources than the core ones
}

// NewDemand returns the demand for these amounts.
func NewDemand(amounts Amounts) Demand {
	d := Demand{amounts: amounts}
	found := 0
	for i, name := range core() {
		if value := amounts.of(name); value > 0 {
			d.core[i] = float64(value)
			found++
		}
	}
	d.rare = found < len(amounts)
	return d
}
