import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api } from '../../api/client';
import { keys, reads } from '../../api/queries';
import { CommandLine } from '../../ui/CommandLine';
import { shellWord } from '../../ui/format';
import { Panel } from '../../ui/Panel';
import { Loaded } from '../../ui/States';

const productQuery = (product: string) =>
  reads([...keys.products, product], (init) =>
    api.GET('/api/fleet/products/{product}', { params: { path: { product } }, ...init }),
  );

/// The product's share and repositories, which are set from a terminal.
export function ProductFacts({ product }: { product: string }) {
  const query = useQuery(productQuery(product));
  const word = shellWord(product);
  return (
    <Panel
      title="Product"
      aside={
        <Link to="/jobs" search={{ product }}>
          <Text size="xs" component="span" c="var(--mantine-color-anchor)">
            Jobs
          </Text>
        </Link>
      }
    >
      <Loaded query={query} what="product">
        {(data) => (
          <Stack gap="xs">
            <Text size="sm">
              Share of the fleet: <b>{data.share}</b>, relative to other products (1 by default).
            </Text>
            <Text size="sm">
              {data.repos.length === 0 ? 'No repositories' : `Repositories: ${data.repos.join(', ')}`}
            </Text>
            <CommandLine
              command={`giga product set ${word} --share ${data.share} --repos ${data.repos.length > 0 ? shellWord(data.repos.join(',')) : "''"}`}
            />
          </Stack>
        )}
      </Loaded>
    </Panel>
  );
}
