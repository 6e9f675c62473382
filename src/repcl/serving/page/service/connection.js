/** Whether the service answers; told to whoever asked when it changes. */

let isConnected = true;
/** @type {((isConnected: boolean) => void)[]} */
const listeners = [];

/** @param {(isConnected: boolean) => void} listener */
export function onConnection(listener) {
  listeners.push(listener);
}

export function answered() {
  become(true);
}

export function notAnswered() {
  become(false);
}

/** @param {boolean} now */
function become(now) {
  if (now === isConnected) return;
  isConnected = now;
  for (const listener of listeners) listener(now);
}
