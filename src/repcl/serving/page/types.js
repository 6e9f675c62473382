/**
 * What the service sends, as types for editors and checkers; nothing here runs.
 *
 * @typedef {"sentence" | "relation" | "event"} Kind
 * @typedef {{texts_per_request: number, examples_per_request: number, text_length: number, label_length: number, body_bytes: number}} Limits
 * @typedef {object} Model
 * @property {string} name
 * @property {string} method
 * @property {Kind} kind
 * @property {number} revision
 * @property {number} classes
 * @property {number | null} texts
 * @property {boolean} can_write
 * @property {string | null} why_not
 * @property {boolean} needs_token
 * @property {boolean} collects
 * @property {boolean} multilabel Whether a text may have several labels.
 * @property {string} version
 * @property {Limits} limits
 *
 * @typedef {[number, number]} Span Characters from the first up to, not including, the second.
 * @typedef {{text: string, head?: Span | null, tail?: Span | null, trigger?: Span | null}} Asked
 * @typedef {Asked & {label: string}} Example
 *
 * @typedef {{label: string, probability: number}} Candidate
 * @typedef {{text: string, label: string, similarity: number}} Neighbor
 * @typedef {object} Prediction
 * @property {string | null} label
 * @property {Candidate[]} labels All that the text has; several where the model allows that.
 * @property {boolean} unknown
 * @property {number} confidence
 * @property {Candidate[]} top
 * @property {Neighbor[]} nearest
 *
 * @typedef {"queued" | "running" | "refused" | "done" | "failed" | "canceled" | "lost" | "discarded"} State
 * @typedef {"learn" | "rename" | "merge" | "remove" | "rollback"} Action
 * @typedef {{stage: string, done: number, total: number, seconds_left: number | null}} Progress
 * @typedef {object} ClassChange
 * @property {string} label
 * @property {number} texts
 * @property {number | null} before
 * @property {number | null} after
 * @property {boolean} regressed
 * @property {string | null} taken_by
 * @property {string[]} lost_texts
 * @property {string | null} advice
 * @typedef {{text: string, label: string, likelier: string}} DoubtfulText
 * @typedef {object} Summary
 * @property {string} sentence
 * @property {string[]} reasons Why the guard advises against it.
 * @property {string[]} new_classes
 * @property {number} examples
 * @property {number} corrected
 * @property {number | null} accuracy_before
 * @property {number | null} accuracy_after
 * @property {ClassChange[]} classes
 * @property {DoubtfulText[]} doubtful_texts Those that a refused job should be checked for.
 * @property {string[]} notes
 * @typedef {object} Job
 * @property {string} id
 * @property {Action} action
 * @property {State} state
 * @property {Progress | null} progress
 * @property {string} created
 * @property {string | null} started
 * @property {string | null} finished
 * @property {number | null} revision
 * @property {{title: string, detail: string} | null} problem
 * @property {Summary | null} summary
 *
 * @typedef {object} ClassRow
 * @property {string} label
 * @property {number | null} texts
 * @property {number} checked
 * @property {number | null} recall
 * @property {{label: string, count: number} | null} confused_with
 * @property {number} kept
 *
 * @typedef {object} Revision
 * @property {number} number
 * @property {number | null} parent
 * @property {string} when
 * @property {string} action
 * @property {string} sentence
 * @property {number} classes
 * @property {number | null} accuracy
 * @property {boolean} is_current
 * @property {boolean} is_refused
 * @property {boolean} is_accepted Whether it was refused and used all the same.
 *
 * @typedef {Asked & {id: string, label: string | null, confidence: number, when: string}} Collected The label is the best guess.
 * @typedef {{texts: Collected[]}} Group
 * @typedef {{collects: boolean, total: number, groups: Group[]}} Unknown
 */

export {};
