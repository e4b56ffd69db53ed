"""above_tape below_tape untaped used_tapes Causes of a gradient that is not there."""
