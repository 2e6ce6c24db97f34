import { Typography } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { markdownQuery } from '../api/queries';
import { Loaded } from './States';

/// Markdown that the coordinator rendered and sanitised. The only HTML that the page accepts.
export function Markdown({ text }: { text: string }) {
  const query = useQuery(markdownQuery(text));
  return (
    <Loaded query={query} what="text">
      {(html) => (
        // biome-ignore lint/security/noDangerouslySetInnerHtml: sanitised by the coordinator, and the policy allows no scripts
        <Typography dangerouslySetInnerHTML={{ __html: html }} />
      )}
    </Loaded>
  );
}
