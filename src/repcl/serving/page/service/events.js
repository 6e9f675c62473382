/** Reads server-sent events from an answer. `EventSource` cannot send the token, so it is done here. */

/** @typedef {{name: string, data: string}} ServerEvent */

/**
 * @param {Response} response
 * @returns {AsyncGenerator<ServerEvent>}
 */
export async function* readEvents(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (waiting + value.replaceAll("\r", "")).split("\n\n");
      waiting = blocks.pop() ?? "";
      for (const block of blocks) yield parsed(block);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/**
 * @param {string} block
 * @returns {ServerEvent}
 */
function parsed(block) {
  const event = { name: "message", data: "" };
  for (const line of block.split("\n")) {
    const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === "event") event.name = value;
    if (field === "data") event.data += (event.data ? "\n" : "") + value;
  }
  return event;
}
