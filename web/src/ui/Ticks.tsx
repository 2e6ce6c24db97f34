import { Code } from '@mantine/core';

/// What the coordinator puts between backticks is code. Everything is text to the browser, whoever wrote it.
export function Ticks({ text }: { text: string }) {
  const parts = text.split('`');
  // An odd tick at the end opens nothing.
  if (parts.length % 2 === 0) return <>{text}</>;
  return (
    <>
      {parts.map((part, at) => {
        // biome-ignore lint/suspicious/noArrayIndexKey: a part is its place
        return at % 2 === 0 ? <span key={at}>{part}</span> : <Code key={at}>{part}</Code>;
      })}
    </>
  );
}
