import { useQuery } from '@tanstack/react-query';
import { whoamiQuery } from '../../api/queries';
import type { Role } from '../../api/vocabulary';
import { useMay } from '../../session/useSession';

/// A pool may serve every product, so a token for some of them does not change it.
export function useMayPools(least: Role): boolean {
  const everyProduct = useQuery(whoamiQuery()).data?.everyProduct === true;
  return useMay(least) && everyProduct;
}
