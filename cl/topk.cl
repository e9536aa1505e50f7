// The k smallest keys of each row x of n keys, in the order of the row, and their indices; or the k-th smallest key.
//
//     threshold = k-th smallest of x,   need = k - #{i : x[i] < threshold}
//     out       = all x[i] < threshold, and the first `need` of all x[i] == threshold
//
// Keys compare by `ordered` (lib/keys.cl), which reverses the order if the largest keys are wanted.
//
// Bytes: `filter` reads n keys, and `write` writes k. If there is a lower bound or the threshold is at a bound, `write`
// reads parts with selected keys again. If the bounds fail, because of many equal keys or bad luck, `count` reads n
// keys for each digit, and `tally` and `write` read n more each.
//
//     start:   low, high = keys of a sample, more than five standard deviations below and above rank k
//     filter:  for each part of the row: counts the keys below low, at low, between, at high; lists those between
//     settle:  if rank k is at low or at high: that is the threshold
//              else: searches the listed keys if rank k is between, and all keys if it is not or the list is full
//     for each digit, from the most significant one on:
//         count:  histogram of the digit over the searched keys that have the threshold's digits so far
//         find:   the digit whose keys contain rank `need`; with ONE_PASS, by the last work-group of `count`
//     tally:   for each part: counts the keys below the threshold, and at it
//     write:   for each part: exclusive prefix of the tallies, then the selected keys, in order
//     order:   sorts up to ORDER selected keys; more are sorted by sort.cl
//
// If only the k-th smallest key is wanted, `values` replaces `write` and `order`: it converts the threshold to a key.
// With FLOAT_KEYS several keys have one number, so it looks for the key after `tally`.
// Without PICK there are no bounds: `filter` and `settle` do not run, and the other steps read all keys.
// If rows are short, or many, `rows` does all this but `order` with one work-group for each row, without bounds.
//
// No work-group waits for another one, and the host waits for none. Each kernel leaves its result in the state of the
// row. If a row is done, `count` reads none of its keys, and `find` leaves its threshold as it is.
//
// Source: radix selection as in Zhang, Naruse, Li and Wang (2023), after a sample that leaves few keys.
#include "lib/topk_row.cl"
#include "topk_bounds.cl"
#include "topk_digits.cl"
#include "topk_write.cl"
